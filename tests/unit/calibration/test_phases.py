from random import Random

import pytest

from llmshed.calibration.flights import Flights
from llmshed.calibration.phases import Phases
from llmshed.calibration.plan import Objective, Plan, Shape
from llmshed.calibration.results import Phase

PLAN = Plan((Shape(300, 100, "interactive"), Shape(500, 20, "interactive")), {"interactive": Objective(2.0, 0.1)})


def phases() -> Phases:
    made = Phases(PLAN, Random(1))  # noqa: S311 - no secret
    made.idle_tokens_per_second, made.ceiling_tokens = 8000.0, 27_200.0
    made.tokens_per_second, made.sequences = 5000.0, 40.0
    return made


@pytest.mark.parametrize(
    ("phase", "level", "whole"),
    [
        (Phase.KV, 4 * (400 + 520) / 2, 60.0),  # four requests of the mean
        (Phase.PREFILL, 1200.0, 30.0),
        (Phase.CAP, 8.0, 35.0),
        (Phase.CONFIRM, 5000.0, 95.0),
    ],
)
def test_each_sweep_begins_where_those_before_it_point(phase: Phase, level: float, whole: float) -> None:
    sweep = phases().make(phase, 7.0, 100.0)
    assert sweep.level == pytest.approx(level)
    assert sweep.ends_at == pytest.approx(7.0 + whole)


def test_the_prefill_sweep_sends_short_outputs_and_the_cap_short_contexts() -> None:
    short = phases().make(Phase.PREFILL, 0.0, 100.0).next_shape(Flights(), 0.0)
    assert short is not None
    assert short[0].ceiling_tokens in {20, 32}
    seat = phases().make(Phase.CAP, 0.0, 100.0).next_shape(Flights(), 0.0)
    assert seat is not None
    assert seat[0].reserved_tokens == 272


def test_a_first_level_that_is_given_is_begun_with() -> None:
    plan = Plan(PLAN.mix, PLAN.objectives, first_level_tokens=9000)
    assert Phases(plan, Random(1)).make(Phase.KV, 0.0, 100.0).level == 9000  # noqa: S311 - no secret
