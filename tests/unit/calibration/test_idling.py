from random import Random

import pytest

from llmshed.calibration.idling import Idling
from llmshed.calibration.plan import Objective, Plan, Shape
from llmshed.workload.asks import Ask, Outcome, Sample

PLAN = Plan((Shape(300, 100, "interactive"),), {"interactive": Objective(2.0, 0.1)})


def answer(idling: Idling, shape: Shape, ttft: float, outcome: Outcome = Outcome.FINISHED) -> None:
    ask = Ask("a", shape.input_tokens, shape.ceiling_tokens, runs_to_ceiling=True, lane=shape.lane)
    times = (ttft,) if shape.ceiling_tokens == 1 else (ttft, ttft + 0.02 * (shape.ceiling_tokens - 1))
    idling.answered(Sample(ask, 0.0, 0.0, times, times[-1], outcome, 200, shape.ceiling_tokens))


def test_it_measures_the_fixed_prompt_a_lone_step_and_the_mix() -> None:
    idling = Idling(PLAN, Random(1))  # noqa: S311 - no secret
    first = idling.next_shape()
    assert first == Shape(1024, 1, "interactive")
    answer(idling, first, 9.0)  # the one that wakes the replica is not looked at
    while (shape := idling.next_shape()) is not None:
        answer(idling, shape, shape.input_tokens / 1000)
    found = idling.result()
    assert found is not None
    assert found.fixed_prompt_tokens == 1024
    assert found.fixed_prompt_seconds == pytest.approx(1.024)
    assert found.decode_step_seconds == pytest.approx(0.02)
    assert found.ttft_p50_seconds == found.ttft_p95_seconds == pytest.approx(0.3)
    assert idling.prefill_tokens_per_second == pytest.approx(1000)


def test_the_fixed_prompt_keeps_the_engines_longest() -> None:
    short = Plan(PLAN.mix, PLAN.objectives, max_input_tokens=512)
    assert Idling(short, Random(1)).fixed_prompt_tokens == 512  # noqa: S311 - no secret


def test_what_is_missing_is_not_made_up() -> None:
    idling = Idling(PLAN, Random(1))  # noqa: S311 - no secret
    while (shape := idling.next_shape()) is not None:
        answer(idling, shape, 1.0, Outcome.FAILED)
    assert idling.result() is None
    assert idling.prefill_tokens_per_second is None
