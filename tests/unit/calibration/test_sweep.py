"""A sweep against a replica of which everything is known: each ask has its first token and its pace by a rule."""

from random import Random

import pytest

from llmshed.calibration.drawing import Draws
from llmshed.calibration.flights import Flights, Role
from llmshed.calibration.gates import TokensGate
from llmshed.calibration.plan import Objective, Plan, Shape
from llmshed.calibration.search import Search, Stage
from llmshed.calibration.sweep import Sweep, SweepTimes
from llmshed.workload.asks import Ask, Outcome, Sample

PLAN = Plan((Shape(300, 100, "interactive"),), {"interactive": Objective(2.0, 0.1)})


def swept(
    knee: float, *, by_pace: bool = False, refuses: bool = False, misled_to: float | None = None, whole: float = 400.0
) -> tuple[Sweep, float]:
    """Run a sweep; beyond `knee` reserved tokens first tokens are late or the pace is slow. Tell the most in flight.

    `misled_to` is where a bisection ended that took a level far beyond for one that held.
    """
    rng = Random(1)  # noqa: S311 - no secret
    search = Search(1000.0)
    if misled_to is not None:
        search.stage, search.level, search.low, search.high = Stage.RETURN, misled_to, misled_to, 1.02 * misled_to
    sweep = Sweep(PLAN, TokensGate(), Draws(PLAN.mix, rng), search, SweepTimes(whole), 0.0, aged=True)
    flights, now, number, most = Flights(), 0.0, 0, 0
    due: list[tuple[float, int, Sample | str]] = []
    while not sweep.over(now):
        while (following := sweep.next_shape(flights, now)) is not None:
            shape, role = following
            number += 1
            ask = Ask(str(number), shape.input_tokens, shape.ceiling_tokens, runs_to_ceiling=True, lane=shape.lane)
            flights.send(ask, now, role)
            most = max(most, flights.reserved_tokens)
            beyond = flights.reserved_tokens > knee
            if refuses and beyond:
                due.append((now, number, Sample(ask, now, now, (), now, Outcome.REFUSED, 429, 0)))
                continue
            first = now + (3.0 if beyond and not by_pace else 0.1)
            end = first + ask.ceiling_tokens * (0.11 if beyond and by_pace else 0.05)
            times = (first, end) if ask.ceiling_tokens > 1 else (first,)
            due.append((first, number, ask.id))
            due.append((end, number, Sample(ask, now, now, times, end, Outcome.FINISHED, 200, ask.ceiling_tokens)))
        now += 0.1
        for at, _, told in sorted(due, key=lambda one: one[:2]):
            if at > now:
                continue
            if isinstance(told, str):
                if (flight := flights.first_token(told, at)) is not None:
                    sweep.first_token(flight, at)
            elif (flight := flights.end(told.ask.id)) is not None:
                sweep.answered(flight, told, flights.mean_level(flight, at), at)
        due = [one for one in due if one[0] > now]
        sweep.judge(flights, now, 0.0, rng)
        assert flights.check() == ()
    sweep.knee(rng)
    return sweep, most


@pytest.mark.slow
@pytest.mark.parametrize("by_pace", [False, True])
def test_the_knee_is_found_and_what_broke_is_named(by_pace: bool) -> None:  # noqa: FBT001 - a pytest parameter
    sweep, most = swept(12_000, by_pace=by_pace)
    assert sweep.found is not None
    assert 0.9 * 12_000 <= sweep.found.low <= sweep.found.point <= 1.06 * 12_000
    assert sweep.broke == ("TPOT" if by_pace else "TTFT")
    assert most <= 1.5 * 12_000


@pytest.mark.slow
def test_refusals_are_a_knee_too() -> None:
    sweep, _ = swept(8000, refuses=True)
    assert sweep.found is not None
    assert 0.8 * 8000 <= sweep.found.low <= 1.06 * 8000


@pytest.mark.slow
@pytest.mark.parametrize("by_pace", [False, True])
def test_a_bisection_that_ended_far_beyond_the_knee_is_left(by_pace: bool) -> None:  # noqa: FBT001 - a pytest parameter
    sweep, _ = swept(8000, by_pace=by_pace, misled_to=16_000.0, whole=800.0)
    assert sweep.found is not None
    assert 0.9 * 8000 <= sweep.found.low <= sweep.found.point <= 1.06 * 8000
    cut, _ = swept(8000, by_pace=by_pace, misled_to=16_000.0, whole=100.0)
    assert cut.found is not None
    assert cut.found.low == 0, "what was seen to break is no bound from below"


def test_a_level_is_filled_with_what_is_half_done_and_kept_with_fresh_requests() -> None:
    rng = Random(1)  # noqa: S311 - no secret
    sweep = Sweep(PLAN, TokensGate(), Draws(PLAN.mix, rng), Search(1000.0), SweepTimes(10.0), 0.0, aged=True)
    flights = Flights()
    roles = []
    for number in range(3):
        following = sweep.next_shape(flights, 0.0)
        if following is None:
            break
        shape, role = following
        roles.append(role)
        ask = Ask(str(number), shape.input_tokens, shape.ceiling_tokens, runs_to_ceiling=True, lane=shape.lane)
        flights.send(ask, 0.0, role)
    assert roles == [Role.FILL, Role.FILL]
    flights.end("0")
    following = sweep.next_shape(flights, 1.0)
    assert following is not None
    assert following[1] is not Role.FILL
