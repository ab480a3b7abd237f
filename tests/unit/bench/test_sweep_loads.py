"""Loads of a sweep on step times that can be added up by hand: a step takes a second, whatever is in it."""

from functools import partial

import pytest
from sweep_loads import Shape, burst, closed_loop

from llmshed.simulation.building import build_model
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters

SECOND = StepTimes(step_seconds=1.0, seconds_per_prefill_token=0.0, seconds_per_decoding_sequence=0.0)
BUILD = partial(build_model, ReplicaParameters(step_times=SECOND, max_concurrent_requests=4, kv_tokens=8193))


def test_one_client_has_its_first_token_after_a_step_and_then_one_a_step() -> None:
    seen = closed_loop(BUILD, Shape(100, 10), 1)
    assert (seen.ttft_seconds, seen.tpot_seconds) == (1.0, 1.0)
    # 100 tokens of prompt for each answer of 10 steps.
    assert seen.prompt_tokens_per_second == pytest.approx(10.0)


def test_of_four_clients_each_waits_for_the_step_that_began_when_its_last_answer_ended_and_for_its_own() -> None:
    seen = closed_loop(BUILD, Shape(100, 12), 4)
    assert (seen.ttft_seconds, seen.tpot_seconds) == (2.0, 1.0)
    assert seen.prompt_tokens_per_second == pytest.approx(4 * 100 / 13)


def test_a_client_whose_request_does_not_fit_beside_the_others_waits_for_an_end() -> None:
    # Two requests of 3,000 + 100 tokens fit 8,192, a third waits for one of them: half of an answer at least.
    assert closed_loop(BUILD, Shape(3000, 100), 2).ttft_seconds == 2.0
    assert closed_loop(BUILD, Shape(3000, 100), 3).ttft_seconds >= 50


def test_more_clients_than_permits_are_no_load() -> None:
    with pytest.raises(ValueError, match=r"the replica refuses Shape\(input_tokens=100, output_tokens=12\)"):
        closed_loop(BUILD, Shape(100, 12), 5)


def test_of_prompts_at_once_the_last_has_its_token_when_all_before_it_are_through() -> None:
    # A step takes 4,096 tokens: four prompts of 2,048 take two steps.
    assert burst(BUILD, Shape(2048, 1), 1) == 1.0
    assert burst(BUILD, Shape(2048, 1), 3) == 2.0
