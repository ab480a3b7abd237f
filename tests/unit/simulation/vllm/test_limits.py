"""vLLM's limits on one prompt; the cases of `14 in, 2048 asked of 2048` were seen on vLLM 0.32."""

import pytest

from llmshed.simulation.limits import InputTooLong, OutputPlan, TotalTooLong
from llmshed.simulation.sequences import Sequence
from llmshed.simulation.vllm.limits import plan_output


@pytest.mark.parametrize(
    ("input_tokens", "asked", "output"),
    [
        (14, 2048, 2034),
        (14, None, 2034),
        (14, 2034, 2034),
        (14, 100, 100),
        (2047, 500, 1),
    ],
)
def test_output_is_what_is_asked_cut_to_what_the_context_leaves(
    input_tokens: int, asked: int | None, output: int
) -> None:
    assert plan_output(2048, Sequence(1, input_tokens, asked)) == OutputPlan(input_tokens, output, output)


def test_an_answer_is_never_cut_into_chunks_of_1024() -> None:
    assert plan_output(8192, Sequence(1, 100, 5000)) == OutputPlan(100, 5000, 5000)


@pytest.mark.parametrize("input_tokens", [2048, 2049, 90_000])
def test_a_prompt_that_leaves_no_room_for_a_token_is_refused(input_tokens: int) -> None:
    assert plan_output(2048, Sequence(1, input_tokens, 1)) == InputTooLong(2047, input_tokens)


def test_a_ceiling_above_the_whole_context_is_refused_although_a_smaller_one_would_be_cut() -> None:
    assert plan_output(2048, Sequence(1, 14, 2049)) == TotalTooLong(2048, 14, 2049)


def test_truncation_comes_before_the_check() -> None:
    assert plan_output(2048, Sequence(1, 9000, 10, truncate_tokens=2000)) == OutputPlan(2000, 10, 10)


def test_truncation_never_makes_a_prompt_longer() -> None:
    assert plan_output(2048, Sequence(1, 30, 10, truncate_tokens=2000)) == OutputPlan(30, 10, 10)


def test_an_empty_prompt_takes_one_position() -> None:
    assert plan_output(2048, Sequence(1, 0)) == OutputPlan(1, 2047, 2047)
