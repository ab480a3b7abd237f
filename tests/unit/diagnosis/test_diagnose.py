"""The whole: healthy systems are called so, and an overload gets one cause and one change."""

from random import Random

import pytest

from fakes.incident import BEGINS, CALM, SUFFERING, staged
from llmshed.diagnosis.causes import Cause
from llmshed.diagnosis.changes import CHANGES
from llmshed.diagnosis.diagnose import Confidence, Diagnosis, Finding, diagnose
from llmshed.diagnosis.facts import Facts
from llmshed.diagnosis.signals import SIGNALS, Stage

LOSS = {**SUFFERING, "replicas_up": 0.5, "refused_for_tokens": 0.9, "lent": 0.98}


def told(facts: Facts) -> Diagnosis:
    return diagnose(facts, Random(0).randrange)  # noqa: S311 - a bootstrap's draws


@pytest.mark.parametrize(
    "busy",
    [
        {"gpu": 0.98, "lent": 0.95, "interactive_arrivals": 40.0},
        {"interactive_depth": 12.0, "oldest_age": 0.4},
        {"bulk_arrivals": 30.0, "bulk_input": 90_000.0, "bulk_depth": 400.0, "bulk_refused": 5.0, "bulk_prefill": 0.3},
        {"missed": 0.03, "missed_requests": 20.0},
        {"missed": 0.5, "missed_requests": 1.0},
    ],
)
def test_busy_and_well_is_healthy(busy: dict[str, float]) -> None:
    found = told(staged(busy))
    assert found.finding is Finding.HEALTHY
    assert (found.named, found.change) == ((), None)


def test_an_overload_names_one_cause_with_confidence_and_one_change() -> None:
    found = told(staged(LOSS))
    assert found.finding is Finding.OVERLOAD
    (named,) = found.named
    assert named.suspicion.cause is Cause.REPLICA_LOSS
    assert (named.confidence, named.share) == (Confidence.HIGH, 1.0)
    assert found.change is CHANGES[Cause.REPLICA_LOSS]
    assert found.began == BEGINS


def test_what_nothing_tells_apart_is_named_together_with_shares() -> None:
    both = {**LOSS, "profile_mismatch": 1.0}
    found = told(staged(both))
    assert {named.suspicion.cause for named in found.named} == {Cause.REPLICA_LOSS, Cause.DRIFTED_PROFILE}
    assert sum(named.share for named in found.named) == pytest.approx(1.0)
    assert Confidence.HIGH not in {named.confidence for named in found.named}


@pytest.mark.parametrize("trouble", [{"profile_mismatch": 1.0}, {"stalls": 1.0}, {"replicas_up": 0.5}])
def test_what_hurts_nobody_yet_is_a_warning(trouble: dict[str, float]) -> None:
    found = told(staged(trouble))
    assert (found.finding, found.named) == (Finding.WARNING, ())


def test_without_the_gateways_own_figures_nothing_is_claimed() -> None:
    found = told(staged({}, absent=("missed", "interactive_refused")))
    assert found.finding is Finding.UNKNOWN
    assert told(Facts({}, 0.0, 60.0, {})).finding is Finding.UNKNOWN


def test_refusals_stand_in_for_objectives_that_nobody_told() -> None:
    found = told(staged(LOSS, absent=("missed", "missed_requests")))
    assert found.finding is Finding.OVERLOAD


def test_the_signals_are_told_in_their_order_with_what_was_missing() -> None:
    found = told(staged(LOSS, absent=("gpu",)))
    assert [reading.signal for reading in found.readings] == list(SIGNALS)
    gpu = found.readings[-1]
    assert (gpu.value, gpu.unread) == (None, "no such series")
    missed = next(reading for reading in found.readings if reading.signal.name == "missed")
    assert missed.departure is not None
    assert missed.departure.at == BEGINS
    assert {reading.signal.stage for reading in found.readings} == set(Stage)


def test_an_incident_that_fills_the_window_is_held_against_what_was_before_it() -> None:
    names = (*CALM, *LOSS)
    found = told(staged(LOSS, begins=dict.fromkeys(names, 3600.0)))
    assert found.finding is Finding.OVERLOAD
    assert found.named[0].suspicion.cause is Cause.REPLICA_LOSS


def test_a_stale_ladder_is_a_warning_beside_any_finding() -> None:
    for changed, finding in (({}, Finding.HEALTHY), (LOSS, Finding.OVERLOAD)):
        found = told(staged({**changed, "stale_rungs": 2.0}, begins={"stale_rungs": 0.0}))
        assert found.finding is finding
        assert found.warnings == (
            "Rungs whose evaluation no longer holds: 2; `llmshed ladder status` names them and says why.",
        )
    assert told(staged({})).warnings == ()
