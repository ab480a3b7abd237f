"""The gauges of what waits and of the prefill windows, and the histogram of waits."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fakes.states import METERED, POOL
from llmshed.admission.budget import Equation
from llmshed.admission.echo import Arrival
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane
from llmshed.admission.state import ControllerState, ReplicaState
from llmshed.admission.verdict import Decision, WindowTerms
from llmshed.config.lanes import LaneSettings
from llmshed.observability.decisions import DecisionLine, DecisionLog, Waits
from llmshed.observability.endings import Ending
from llmshed.observability.goodput import objectives_of
from llmshed.observability.metrics import LEFT_QUEUE, Metrics
from llmshed.observability.observer import Observer

FREE = WindowTerms(None, 0.0, 10, None, None, 0.0)


@pytest.fixture
def observer() -> Observer:
    return Observer(Metrics(), DecisionLog(lambda _: None, history=10), objectives_of(LaneSettings()))


def scraped(observer: Observer) -> Mapping[tuple[str, str], float]:
    """Return the samples by name and label values, in the order of the label names."""
    equation = Equation(1, 0, 0, 0, 0, 1)
    metered = ReplicaState("gpu-0", "main", True, "p", equation, 0, {}, METERED, 0.125, 0.3, 0.05)  # noqa: FBT003 - `up`
    free = replace(metered, name="gpu-1", window=FREE, bulk_prefill_share=None, bulk_prefill_cap_ratio=None)
    replicas = (metered, replace(free, bulk_prefill_floor_ratio=None))
    arrivals = {Arrival.FIRST: 10, Arrival.EARLY: 5}
    state = ControllerState(replicas, False, 0, (POOL,), arrivals)  # noqa: FBT003 - `draining`
    return {
        (sample.name, " ".join(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(b"".join(observer.slices(state)).decode())
        for sample in family.samples
    }


def test_each_queue_tells_what_waits_and_how_its_waits_are_foretold(observer: Observer) -> None:
    seen = scraped(observer)
    normal, low, high = "interactive main normal", "bulk main low", "interactive main high"
    names = ("queue_depth", "queued_tokens", "queued_prefill_tokens", "delay_factor", "promised_seconds")
    told = {labels: [seen[f"llmshed_{name}", labels] for name in names] for labels in (normal, low, high)}
    assert told == {
        normal: [3, 900, 700, 1.25, 2.5],
        low: [1, 9_000, 8_000, 4.0, 60.0],
        high: [0, 0, 0, 1.0, 0.0],
    }
    assert seen["llmshed_queue_oldest_age_seconds", "interactive main"] == 0.25
    assert seen["llmshed_queue_oldest_age_seconds", "bulk main"] == 31.5
    assert seen["llmshed_ghost_requests", "main"] == 7
    assert seen["llmshed_ghost_requests_ended_total", "fitted main"] == 90
    assert seen["llmshed_ghost_requests_ended_total", "given_up main"] == 4
    assert seen["llmshed_amplification_ratio", ""] == 1.5


def test_each_window_tells_its_terms_and_bulks_share_stands_beside_cap_and_floor(observer: Observer) -> None:
    seen = scraped(observer)
    assert {name: value for (name, labels), value in seen.items() if labels == "main gpu-0" and "fill" in name} == {
        "llmshed_prefill_tokens_per_second": 8_000,
        "llmshed_prefill_level_tokens": -500,
        "llmshed_prefill_inflight_tokens": 3_000,
        "llmshed_prefill_inflight_limit_tokens": 4_096,
        "llmshed_bulk_prefill_ratio": 0.125,
        "llmshed_bulk_prefill_cap_ratio": 0.3,
        "llmshed_bulk_prefill_floor_ratio": 0.05,
    }
    assert seen["llmshed_bulk_cap_level_tokens", "main gpu-0"] == 600
    assert seen["llmshed_bulk_floor_credit_tokens", "main gpu-0"] == -20
    assert seen["llmshed_shadow_tokens", "main gpu-0"] == 0


def test_a_number_that_there_is_not_has_no_series(observer: Observer) -> None:
    of_other = {name for name, labels in scraped(observer) if labels == "main gpu-1" and "fill" in name}
    assert of_other == {"llmshed_prefill_level_tokens", "llmshed_prefill_inflight_tokens"}


def test_waits_are_counted_whatever_came_of_them_and_only_of_those_that_waited(observer: Observer) -> None:
    def end(ending: Ending, decision: Decision, reason: Reason | None, estimated: float | None) -> None:
        line = DecisionLine(0.0, "r", "/generate", 200, ending, "--", lane=Lane.BULK, pool="main", decision=decision)
        waits = Waits(queue_seconds=3.0)
        observer.request_began()
        observer.request_ended(replace(line, reason=reason, estimated_queue_seconds=estimated, waits=waits))

    assert scraped(observer)["llmshed_queue_residence_seconds_count", "bulk main"] == 0
    end(Ending.FINISHED, Decision.ADMIT, None, None)
    assert scraped(observer)["llmshed_queue_residence_seconds_count", "bulk main"] == 0
    end(Ending.FINISHED, Decision.ADMIT, None, 2.0)
    end(Ending.EVICTED, Decision.QUEUE, Reason.QUEUE_TIMEOUT, 2.0)
    end(Ending.CANCELLED, Decision.QUEUE, None, 2.0)
    seen = scraped(observer)
    assert seen["llmshed_queue_residence_seconds_count", "bulk main"] == 3
    assert seen["llmshed_queue_residence_seconds_sum", "bulk main"] == 9
    assert seen["llmshed_requests_total", "queue bulk queue_timeout"] == 1
    assert seen["llmshed_requests_total", "queue bulk none"] == 1


def test_every_way_out_of_a_queue_is_zero_from_the_start(observer: Observer) -> None:
    seen = scraped(observer)
    for reason in (*LEFT_QUEUE, "none"):
        assert seen["llmshed_requests_total", f"queue interactive {reason}"] == 0
