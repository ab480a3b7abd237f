"""What metrics tell of ladders: where pools stand, what rungs did to requests, and what that saved."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fakes.rungs import STOP_BULK, cap, ladder_of, pool_on
from fakes.states import POOL
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.service.laddering import Laddering
from llmshed.admission.state import ControllerState
from llmshed.admission.verdict import Decision
from llmshed.config.lanes import LaneSettings
from llmshed.ladder.reading import PoolReading
from llmshed.ladder.staleness import Stale, Why
from llmshed.ladder.standing import Hold
from llmshed.observability.decisions import DecisionLine, DecisionLog, Waits
from llmshed.observability.endings import Ending
from llmshed.observability.goodput import objectives_of
from llmshed.observability.ladder_gauges import evaluations_of
from llmshed.observability.metrics import Metrics
from llmshed.observability.observer import Observer

LADDER = ladder_of(STOP_BULK, cap(100), sample_minimum=1)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def observer(metrics: Metrics) -> Observer:
    return Observer(metrics, DecisionLog(lambda _: None, history=10), objectives_of(LaneSettings()))


def scraped(observer: Observer, laddering: Laddering | None = None) -> Mapping[tuple[str, str], float]:
    """Return the samples by name and label values, in the order of the label names."""
    pool = replace(POOL, ladder=None if laddering is None else laddering.standing)
    state = ControllerState((), False, 0, (pool,))  # noqa: FBT003 - `draining`
    return {
        (sample.name, " ".join(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(b"".join(observer.slices(state)).decode())
        for sample in family.samples
    }


def ended(observer: Observer, **changes: Any) -> None:
    given: dict[str, Any] = {
        "status": 200,
        "ending": Ending.FINISHED,
        "lane": Lane.INTERACTIVE,
        "priority_class": PriorityClass.NORMAL,
        "decision": Decision.ADMIT,
        "prompt_tokens": (50,),
        "waits": Waits(ttft_seconds=0.1, tpot_seconds=0.01),
    }
    line = DecisionLine(time_seconds=0.0, request_id="r", route="/generate", termination="C-", **(given | changes))
    observer.request_began()
    observer.request_ended(line)


def test_a_pool_tells_where_it_stands_and_by_what(observer: Observer) -> None:
    laddering = Laddering(pool_on(LADDER), LADDER, 0.5, 0.0)
    calm = scraped(observer, laddering)
    names = ("ladder_rung", "ladder_by_rule_rung", "ladder_held", "ladder_signal_seconds")
    assert [calm[f"llmshed_{name}", "main"] for name in names] == [0, 0, 0, 0]
    for minute in (60.0, 120.0):
        laddering.waited(Lane.INTERACTIVE, 4.0)
        for step in laddering.advance(minute, lambda: PoolReading((), 0, None, None, 0)):
            observer.ladder_stepped(step)
    for step in laddering.hold(Hold("r2", 1e6, "a test"), 121.0):
        observer.ladder_stepped(step)
    busy = scraped(observer, laddering)
    assert [busy[f"llmshed_{name}", "main"] for name in names[:3]] == [2, 1, 1]
    assert busy["llmshed_ladder_signal_seconds", "main"] == pytest.approx(4.0, rel=0.01)
    assert busy["llmshed_ladder_objective_seconds", "main"] == 0.5
    causes = {labels: value for (name, labels), value in busy.items() if name == "llmshed_ladder_transitions_total"}
    assert causes == {f"{cause} main": cause in {"climbed", "held"} for cause in (
        "climbed", "descended", "held", "released", "expired", "reloaded",
    )}  # fmt: skip


def test_pools_without_a_ladder_have_no_series(observer: Observer) -> None:
    told = scraped(observer)
    assert not [name for name, labels in told if name.startswith("llmshed_ladder") and labels]
    assert told["llmshed_degraded_requests_total", "cap_output interactive"] == 0
    assert told["llmshed_shed_requests_total", "bulk low"] == 0


def test_who_was_degraded_counts_by_action_and_goodput_tells_them_apart(observer: Observer) -> None:
    """Two sequences that asked for 300 tokens are granted 100: 400 are saved."""
    ended(observer)
    ended(
        observer,
        degradations=("shrink_context", "cap_output"),
        asked_output_tokens=300,
        output_ceiling_tokens=100,
        copies=2,
    )
    ended(observer, degradations=("cap_output",), output_ceiling_tokens=100)
    ended(
        observer,
        degradations=("cap_output",),
        output_ceiling_tokens=100,
        decision=Decision.REFUSE,
        ending=Ending.REFUSED,
        reason=Reason.QUEUE_FULL,
        status=429,
    )
    told = scraped(observer)
    assert told["llmshed_degraded_requests_total", "cap_output interactive"] == 3
    assert told["llmshed_degraded_requests_total", "shrink_context interactive"] == 1
    assert told["llmshed_degraded_saved_tokens_total", "cap_output"] == 400
    assert told["llmshed_good_requests_total", "interactive normal"] == 3
    assert told["llmshed_good_degraded_requests_total", "interactive normal"] == 2


def test_what_was_left_out_of_prompts_is_estimated_by_its_bytes(observer: Observer) -> None:
    ended(observer, degradations=("drop_enrichment",), left_out_bytes=400, copies=2)
    ended(observer, degradations=("drop_enrichment", "shrink_context"), left_out_bytes=100)
    told = scraped(observer)
    assert told["llmshed_degraded_saved_tokens_total", "drop_enrichment"] == 200
    assert told["llmshed_degraded_saved_tokens_total", "shrink_context"] == 25


def test_files_that_cannot_be_written_show(observer: Observer) -> None:
    assert scraped(observer)["llmshed_ladder_files_writable", ""] == 1
    observer.ladder_files(writable=False)
    assert scraped(observer)["llmshed_ladder_files_writable", ""] == 0


def test_whom_a_rung_sheds_counts_by_class_and_no_other_refusal_does(observer: Observer) -> None:
    refused: dict[str, Any] = {"decision": Decision.REFUSE, "ending": Ending.REFUSED, "status": 429}
    ended(observer, reason=Reason.SHED_PRIORITY, rung="shed-low", priority_class=PriorityClass.LOW, **refused)
    ended(observer, reason=Reason.SHED_PRIORITY, rung="stop-bulk", lane=Lane.BULK, **refused)
    ended(observer, reason=Reason.SHED_PRIORITY, **refused)
    ended(observer, reason=Reason.DEGRADATION_DECLINED, rung="cap-output", **refused)
    told = scraped(observer)
    shed = {labels: value for (name, labels), value in told.items() if name == "llmshed_shed_requests_total" and value}
    assert shed == {"interactive low": 1, "bulk normal": 1}


def test_a_drill_is_no_traffic(observer: Observer) -> None:
    ended(observer, degradations=("cap_output",), drill="cap-output")
    told = scraped(observer)
    assert told["llmshed_degraded_requests_total", "cap_output interactive"] == 0
    assert told["llmshed_objective_requests_total", "interactive normal"] == 0


def test_stale_evaluations_are_told_by_why(observer: Observer, metrics: Metrics) -> None:
    pools = (pool_on(ladder_of(STOP_BULK, cap(100), {"action": "drop_enrichment"})), pool_on(None, "other"))
    wrong = {"main": (Stale("r2", Why.BEYOND_GAP, "it loses too much"),)}
    metrics.state.evaluations = evaluations_of(pools, lambda pool: wrong.get(pool, ()))
    told = scraped(observer)
    stale = {labels: value for (name, labels), value in told.items() if name == "llmshed_ladder_evaluation_stale"}
    assert len(stale) == 2 * len(Why)
    assert [labels for labels, value in stale.items() if value] == ["main r2 beyond_gap"]
