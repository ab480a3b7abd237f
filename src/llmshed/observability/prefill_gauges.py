"""Gauges of each replica's prefill window, of bulk's part in it, and of what is kept for one that waits."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily

from llmshed.admission.state import ReplicaState
from llmshed.admission.verdict import WindowTerms

_LABELS = ("replica", "pool")

# name, meaning and source of each gauge; one without a value on a replica has no series there
_OF_WINDOW: tuple[tuple[str, str, Callable[[WindowTerms], float | None]], ...] = (
    (
        "llmshed_prefill_tokens_per_second",
        "Rate at which prompt tokens are let in; absent while prefill is not metered.",
        lambda window: window.tokens_per_second,
    ),
    (
        "llmshed_prefill_level_tokens",
        "Prompt tokens that may be let in at once; below 0 while a long prompt is paid off.",
        lambda window: window.level_tokens,
    ),
    (
        "llmshed_prefill_inflight_tokens",
        "Prompt tokens that were dispatched and have no first token yet.",
        lambda window: window.inflight_tokens,
    ),
    (
        "llmshed_prefill_inflight_limit_tokens",
        "Most of these beside a prompt that is alone; absent without a bound.",
        lambda window: window.inflight_limit_tokens,
    ),
    (
        "llmshed_bulk_cap_level_tokens",
        "Prompt tokens that the bulk cap leaves to bulk now; absent while no cap acts.",
        lambda window: window.bulk_level_tokens,
    ),
    (
        "llmshed_bulk_floor_credit_tokens",
        "Prompt tokens that the bulk floor owes to bulk; below 0 while bulk is ahead of it.",
        lambda window: window.bulk_credit_tokens,
    ),
)
_OF_REPLICA: tuple[tuple[str, str, Callable[[ReplicaState], float | None]], ...] = (
    (
        "llmshed_bulk_prefill_ratio",
        "Part of the prompt tokens of the last minute that were bulk's; absent when there were none.",
        lambda replica: replica.bulk_prefill_share,
    ),
    (
        "llmshed_bulk_prefill_cap_ratio",
        "Most of the prefill rate for bulk while interactive work comes; absent where bulk has the replica to itself.",
        lambda replica: replica.bulk_prefill_cap_ratio,
    ),
    (
        "llmshed_bulk_prefill_floor_ratio",
        "Least of the prefill rate for bulk while it has work; absent likewise.",
        lambda replica: replica.bulk_prefill_floor_ratio,
    ),
    (
        "llmshed_shadow_tokens",
        "Reservation of the waiting request for which freed tokens accrue; 0 without one.",
        lambda replica: replica.shadow_tokens,
    ),
)


def prefill_gauges(replicas: Iterable[ReplicaState]) -> Iterator[GaugeMetricFamily]:
    """Yield the families of all replicas, one after the other."""
    replicas = tuple(replicas)
    for name, meaning, of_window in _OF_WINDOW:
        yield _family(name, meaning, ((one, None if one.window is None else of_window(one.window)) for one in replicas))
    for name, meaning, of_replica in _OF_REPLICA:
        yield _family(name, meaning, ((one, of_replica(one)) for one in replicas))


def _family(name: str, meaning: str, values: Iterable[tuple[ReplicaState, float | None]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, meaning, labels=_LABELS)
    for replica, value in values:
        if value is not None:
            family.add_metric((replica.name, replica.pool), float(value))
    return family
