"""What a request takes alone, against the step-time model worked out by hand."""

from math import ceil

import pytest

from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.simulation.vllm.scheduler import VllmScheduler
from llmshed.whatif.idle import IdleTimes, idle_times

STEP, PREFILL, DECODE = 0.01, 0.0001, 0.0002
PARAMETERS = ReplicaParameters(
    max_input_tokens=8000,
    max_total_tokens=8192,
    max_batch_prefill_tokens=1000,
    kv_tokens=20_000,
    max_concurrent_requests=4,
    step_times=StepTimes(STEP, PREFILL, DECODE),
)


def alone(*figures: int | None, parameters: ReplicaParameters = PARAMETERS) -> IdleTimes | None:
    return idle_times(lambda: Scheduler(parameters), *figures)  # type: ignore[arg-type]  # cases are lists of numbers


@pytest.mark.parametrize("input_tokens", [1, 10, 999, 1000, 1001, 2000, 4321, 8000])
def test_the_first_token_comes_with_the_last_piece_of_the_prompt(input_tokens: int) -> None:
    times = alone(input_tokens, 5, 5)
    assert times is not None
    assert times.ttft_seconds == pytest.approx(ceil(input_tokens / 1000) * STEP + input_tokens * PREFILL)


def test_a_version_that_cannot_cut_prompts_takes_one_step() -> None:
    whole = ReplicaParameters(
        version="2.4.0",
        max_input_tokens=4000,
        max_batch_prefill_tokens=4096,
        step_times=StepTimes(STEP, PREFILL, DECODE),
    )
    times = alone(3000, 5, 5, parameters=whole)
    assert times is not None
    assert times.ttft_seconds == pytest.approx(STEP + 3000 * PREFILL)


def test_each_further_token_takes_one_step() -> None:
    times = alone(500, 41, 100)
    assert times is not None
    assert times.tpot_seconds == pytest.approx(STEP + DECODE)
    assert times.total_seconds == pytest.approx(times.ttft_seconds + 40 * (STEP + DECODE))
    assert times.output_tokens == 41


def test_attention_and_residency_count_as_the_model_has_them() -> None:
    pair, resident = 1e-8, 1e-6
    times = StepTimes(STEP, PREFILL, DECODE, seconds_per_attention_pair=pair, seconds_per_resident_token=resident)
    parameters = ReplicaParameters(max_batch_prefill_tokens=1000, step_times=times)
    found = alone(1500, 3, 3, parameters=parameters)
    assert found is not None
    assert found.ttft_seconds == pytest.approx(2 * STEP + 1500 * PREFILL + 1500 * 1501 / 2 * pair)
    # Two decode steps over the prompt and what was produced before each of them.
    steps = 2 * (STEP + DECODE) + (1501 + 1502) * resident
    assert found.total_seconds - found.ttft_seconds == pytest.approx(steps)


def test_the_ceiling_ends_an_answer_before_its_natural_end() -> None:
    times = alone(100, 900, 20)
    assert times is not None
    assert times.output_tokens == 20


def test_one_token_has_no_time_per_further_token() -> None:
    times = alone(100, 1, 20)
    assert times is not None
    assert times.tpot_seconds is None
    assert times.total_seconds == times.ttft_seconds


def test_an_answer_of_several_chunks_prefills_again_at_each() -> None:
    times = alone(100, 1500, 2000)
    assert times is not None
    again = STEP + (100 + 1024) * PREFILL  # with 1,000 a step, two steps
    expected = 1024 - 1, 1500 - 1024 - 1
    decodes = sum(expected) * (STEP + DECODE)
    assert times.total_seconds - times.ttft_seconds == pytest.approx(decodes + again + STEP)


def test_copies_run_side_by_side() -> None:
    one, two = alone(500, 20, 20, 1), alone(500, 20, 20, 2)
    assert one is not None
    assert two is not None
    assert two.output_tokens == 2 * one.output_tokens
    assert two.ttft_seconds == pytest.approx(STEP + 1000 * PREFILL)
    assert two.tpot_seconds == pytest.approx(STEP + 2 * DECODE)


@pytest.mark.parametrize(
    ("figures", "why"),
    [
        ((8001, 5, 5), "the prompt is longer than the model takes"),
        ((8000, 500, 500), "prompt and output exceed the context"),
        ((100, 5, 0), "no room is left for any output"),
        ((100, 5, -4), "the prompt fills the context by itself"),
        ((100, 5, 5, 5), "it has more sequences than the engine has permits"),
    ],
)
def test_what_a_replica_would_not_serve_has_no_times(figures: tuple[int, ...], why: str) -> None:
    assert alone(*figures) is None, why


def test_what_can_never_get_its_kv_has_no_times() -> None:
    # tgi.md 3.2: with speculation a request of the whole context needs one token of KV more than there is.
    parameters = ReplicaParameters(
        version="3.3.5", max_total_tokens=1000, max_input_tokens=900, kv_tokens=1001, speculate=2
    )
    assert alone(900, 100, 100, parameters=parameters) is None


def test_the_first_token_is_that_of_the_copy_that_comes_first() -> None:
    times = alone(800, 1, 1, 2)  # 1,000 tokens a step: the second copy needs a second step for 600 of its prompt
    assert times is not None
    assert times.ttft_seconds == pytest.approx(STEP + 1000 * PREFILL)
    assert times.total_seconds == pytest.approx(2 * STEP + 1600 * PREFILL)


VLLM = VllmParameters(
    max_num_seqs=4,
    max_num_batched_tokens=1000,
    max_model_len=8192,
    kv_tokens=20_000,
    max_num_queued_reqs=4,
    step_times=StepTimes(STEP, PREFILL, DECODE),
)


def alone_on_vllm(*figures: int | None) -> IdleTimes | None:
    return idle_times(lambda: VllmScheduler(VLLM), *figures)  # type: ignore[arg-type]  # cases are lists of numbers


@pytest.mark.parametrize("input_tokens", [1, 999, 1000, 1001, 4321, 8000])
def test_vllm_takes_as_many_steps_for_a_prompt_as_its_budget_asks_for(input_tokens: int) -> None:
    times = alone_on_vllm(input_tokens, 41, 100)
    assert times is not None
    assert times.ttft_seconds == pytest.approx(ceil(input_tokens / 1000) * STEP + input_tokens * PREFILL)
    assert times.tpot_seconds == pytest.approx(STEP + DECODE)
    assert times.output_tokens == 41


def test_vllm_ends_an_answer_at_its_ceiling_however_long_it_is() -> None:
    times = alone_on_vllm(100, 5000, 1500)
    assert times is not None
    assert times.output_tokens == 1500


@pytest.mark.parametrize("figures", [(8192, 5, 5), (100, 5, 5, 5)], ids=["beyond the context", "more than its limit"])
def test_what_vllm_itself_refuses_has_no_idle_times(figures: tuple[int, ...]) -> None:
    assert alone_on_vllm(*figures) is None
