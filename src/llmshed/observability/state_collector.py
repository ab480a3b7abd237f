"""Gauges that are read from the core's snapshot when they are scraped, so that they cannot disagree with the ledger."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric

from llmshed.admission.policy import UNCALIBRATED
from llmshed.admission.request import Lane
from llmshed.admission.state import ControllerState, LaneUse, ReplicaState
from llmshed.observability.ladder_gauges import Evaluations, ladder_gauges
from llmshed.observability.prefill_gauges import prefill_gauges
from llmshed.observability.queue_gauges import queue_gauges

UP = "llmshed_replica_up"
_REPLICA = ("replica", "pool")
_NO_USE = LaneUse(requests=0, sequences=0, reserved_tokens=0)

# name, meaning and source of each gauge that every replica has
_GAUGES: tuple[tuple[str, str, Callable[[ReplicaState], float]], ...] = (
    (UP, "Whether the replica takes new work; 0 from the start.", lambda replica: replica.up),
    (
        "llmshed_gross_ceiling_tokens",
        "Most reserved tokens that the replica was tested to carry.",
        lambda replica: replica.equation.gross_ceiling_tokens,
    ),
    (
        "llmshed_guard_band_tokens",
        "Part of the gross ceiling that is never lent.",
        lambda replica: replica.equation.guard_band_tokens,
    ),
    (
        "llmshed_budget_tokens",
        "Safe budget: gross ceiling less guard band.",
        lambda replica: replica.equation.safe_budget_tokens,
    ),
    (
        "llmshed_active_tokens",
        "Reserved tokens of running requests and of those that the engine may still hold.",
        lambda replica: replica.equation.active_tokens,
    ),
    (
        "llmshed_releasing_tokens",
        "Part of the active tokens whose client is gone.",
        lambda replica: replica.releasing_tokens,
    ),
    (
        "llmshed_headroom_tokens",
        "What of the safe budget is free now; below 0 after it shrank under running work.",
        lambda replica: replica.equation.headroom_tokens,
    ),
    (
        "llmshed_active_sequences",
        "Sequences that the replica runs for the gateway.",
        lambda replica: replica.equation.active_sequences,
    ),
    (
        "llmshed_hard_cap_sequences",
        "Most sequences at once, whatever their size.",
        lambda replica: replica.equation.hard_cap_sequences,
    ),
    (
        "llmshed_uncalibrated",
        "Whether the replica runs without a profile.",
        lambda replica: replica.profile == UNCALIBRATED,
    ),
)


class StateCollector:
    """Yields the gauges of `state` and the other attributes, which are set just before a scrape.

    `configured` holds name and pool of every replica of the configuration: one that never came up is told as down.

    A replica that was removed has no series any more, where an instrument of the library would keep its last value.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.state = ControllerState(replicas=(), draining=False, live_requests=0)
        self.config_version = ""
        self.configured: tuple[tuple[str, str], ...] = ()
        self.evaluations: Evaluations = {}
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Yield one family after the other, all of the state that was set when the first was asked for.

        The caller gives way between two families, so another scrape may set a newer state meanwhile.
        """
        state, version, evaluations = self.state, self.config_version, self.evaluations
        replicas = state.replicas
        met = {replica.name for replica in replicas}
        never_met = [labels for labels in self.configured if labels[0] not in met]
        for name, meaning, value in _GAUGES:
            family = GaugeMetricFamily(name, meaning, labels=_REPLICA)
            for replica in replicas:
                family.add_metric((replica.name, replica.pool), float(value(replica)))
            if name == UP:
                for labels in never_met:
                    family.add_metric(labels, 0.0)
            yield family
        yield from _lane_gauges(replicas)
        yield _profiles(replicas)
        yield from prefill_gauges(replicas)
        yield from queue_gauges(state.pools)
        yield from ladder_gauges(state.pools, evaluations)
        yield GaugeMetricFamily(
            "llmshed_amplification_ratio",
            "All arrivals before admission over the first ones, since the start.",
            value=state.amplification,
        )
        config = GaugeMetricFamily("llmshed_config_info", "Version of the configuration in force.", labels=("version",))
        config.add_metric((version,), 1.0)
        yield config
        yield GaugeMetricFamily("llmshed_draining", "Whether the gateway shuts down.", value=float(state.draining))
        yield GaugeMetricFamily(
            "llmshed_live_requests", "Requests that hold a reservation.", value=float(state.live_requests)
        )


def _lane_gauges(replicas: Iterable[ReplicaState]) -> Iterator[GaugeMetricFamily]:
    labels = (*_REPLICA, "lane")
    reserved = GaugeMetricFamily("llmshed_reserved_tokens", "The active tokens by lane.", labels=labels)
    requests = GaugeMetricFamily(
        "llmshed_active_requests", "Requests that hold reserved tokens, by lane.", labels=labels
    )
    for replica in replicas:
        for lane in (Lane.INTERACTIVE, Lane.BULK):
            use = replica.lanes.get(lane, _NO_USE)  # the snapshot leaves idle lanes out
            reserved.add_metric((replica.name, replica.pool, lane), float(use.reserved_tokens))
            requests.add_metric((replica.name, replica.pool, lane), float(use.requests))
    yield reserved
    yield requests


def _profiles(replicas: Iterable[ReplicaState]) -> GaugeMetricFamily:
    profiles = GaugeMetricFamily(
        "llmshed_profile_info", "Profile behind the replica's budget.", labels=("replica", "profile")
    )
    for replica in replicas:
        profiles.add_metric((replica.name, replica.profile), 1.0)
    return profiles
