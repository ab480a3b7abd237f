"""How far a run is from the log of its traffic: differences worked out by hand, and when nothing is proposed."""

import orjson
import pytest

from llmshed.admission.request import Lane
from llmshed.whatif.hindcast import (
    LEAST_SEEN,
    MOST_DIFFERENCE,
    Hindcast,
    HindcastMeasure,
    hindcast,
    mean_figures,
)
from llmshed.whatif.logged_figures import LaneFigures, LoggedFigures


def figures(refused: float = 0.2, ttft: float | None = 1.0, rate: float = 100.0, seen: int = 1000) -> LaneFigures:
    return LaneFigures(seen, refused, seen, ttft, rate)


def compared(log: LaneFigures, run: LaneFigures | None, lane: Lane = Lane.INTERACTIVE) -> Hindcast:
    return hindcast(LoggedFigures(60.0, {lane: log}, {}, frozenset()), {} if run is None else {lane: run})


def differences(told: Hindcast) -> dict[HindcastMeasure, float | None]:
    return {row.measure: row.difference for row in told.rows}


def test_equal_sides_differ_by_nothing() -> None:
    told = compared(figures(), figures())
    assert set(differences(told).values()) == {0.0}
    assert told.holds
    assert told.largest_difference == 0.0


def test_differences_are_relative_to_the_log() -> None:
    told = compared(figures(0.2, 2.0, 100.0), figures(0.25, 1.8, 104.0))
    assert list(differences(told).values()) == [pytest.approx(0.25), pytest.approx(0.1), pytest.approx(0.04)]
    assert told.worst is not None
    assert (told.worst.lane, told.worst.measure) == (Lane.INTERACTIVE, HindcastMeasure.REFUSED_SHARE)
    assert not told.holds


@pytest.mark.parametrize(("logged", "simulated", "off"), [(0.0, 0.015, 0.15), (0.05, 0.04, 0.1), (0.1, 0.11, 0.1)])
def test_a_small_share_is_held_against_a_tenth(logged: float, simulated: float, off: float) -> None:
    told = compared(figures(logged), figures(simulated))
    assert differences(told)[HindcastMeasure.REFUSED_SHARE] == pytest.approx(off)


@pytest.mark.parametrize(("rate", "holds"), [(115.0, True), (115.1, False), (85.0, True), (84.9, False)])
def test_fifteen_percent_is_the_most(rate: float, holds: bool) -> None:  # noqa: FBT001 - a table's cell
    assert MOST_DIFFERENCE == 0.15
    assert compared(figures(), figures(rate=rate)).holds is holds


def test_the_worst_lane_decides() -> None:
    log = LoggedFigures(60.0, {Lane.INTERACTIVE: figures(), Lane.BULK: figures()}, {}, frozenset())
    told = hindcast(log, {Lane.INTERACTIVE: figures(), Lane.BULK: figures(ttft=3.0)})
    assert told.worst is not None
    assert told.worst.lane is Lane.BULK
    assert told.largest_difference == pytest.approx(2.0)


def test_a_lane_of_few_requests_is_told_and_not_judged() -> None:
    few = figures(seen=LEAST_SEEN - 1)
    told = compared(few, figures(0.9, 9.0, 900.0))
    assert set(differences(told).values()) == {None}
    assert told.notes == ("interactive: 49 tries in the log are too few to judge by; at least 50 are",)
    assert told.largest_difference is None
    assert not told.holds, "what was not judged is no ground for a proposal"


def test_few_first_tokens_leave_the_rest_of_a_lane_judged() -> None:
    told = compared(LaneFigures(1000, 0.96, 40, 1.0, 10.0), LaneFigures(1000, 0.96, 40, 9.0, 10.0))
    assert differences(told)[HindcastMeasure.TTFT_P95] is None
    assert told.holds


def test_what_a_run_never_gave_is_wholly_off() -> None:
    assert differences(compared(figures(), None)) == {
        HindcastMeasure.REFUSED_SHARE: pytest.approx(1.0),
        HindcastMeasure.TTFT_P95: pytest.approx(1.0),
        HindcastMeasure.OUTPUT_RATE: pytest.approx(1.0),
    }


def test_a_lane_of_which_nothing_is_served_is_judged_by_its_refusals() -> None:
    overflow = LaneFigures(200, 1.0, 0, None, 0.0)
    told = compared(overflow, overflow, Lane.OVERFLOW)
    assert list(differences(told).values()) == [0.0, None, None]
    assert told.holds


def test_several_draws_count_as_their_mean() -> None:
    draws = [
        {Lane.INTERACTIVE: figures(0.1, 1.0, 100.0)},
        {Lane.INTERACTIVE: figures(0.3, None, 200.0), Lane.BULK: figures(0.5, 4.0, 50.0)},
    ]
    mean = mean_figures(draws)
    assert mean[Lane.INTERACTIVE] == LaneFigures(1000, 0.2, 1000, 1.0, 150.0)
    assert mean[Lane.BULK] == LaneFigures(500, 0.25, 500, 4.0, 25.0)


def test_it_prints_as_json_with_stable_words() -> None:
    told = orjson.loads(orjson.dumps(compared(figures(0.2), figures(0.25)).to_dict()))
    assert told["holds"] is False
    assert told["largest"] == {"lane": "interactive", "measure": "refused_share"}
    assert told["largest_difference"] == pytest.approx(0.25)
    assert [row["measure"] for row in told["rows"]] == [measure.value for measure in HindcastMeasure]
    assert told["logged"]["interactive"]["ttft_p95_seconds"] == 1.0
