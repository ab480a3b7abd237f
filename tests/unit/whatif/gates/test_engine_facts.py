"""What the oracle knows of the engine, held against the engine itself."""

from dataclasses import replace

import pytest

from fakes.stages import GPU
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import Ended, FirstToken, StepKind, StepsEnded
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.whatif.gates.engine_facts import Batch, EngineFacts
from llmshed.whatif.gates.prompts import PromptWork, prompt_work

NOBODY = Batch(0, 0)
ATTENTIVE = replace(
    GPU,
    step_times=StepTimes(
        step_seconds=0.01,
        seconds_per_prefill_token=1 / 10_000,
        seconds_per_decoding_sequence=0.0002,
        weights_seconds=0.02,
        seconds_per_attention_pair=2e-8,
        seconds_per_resident_token=1e-6,
    ),
)


@pytest.mark.parametrize("input_tokens", [1, 150, 4095, 4096, 4097, 8000])
def test_a_prompt_alone_takes_as_long_as_in_the_engine(input_tokens: int) -> None:
    model = Scheduler(ATTENTIVE)
    model.take_permit(1)
    model.submit(Sequence(1, input_tokens, 1), 0.0)
    first = next(told for told in model.advance(1000.0) if isinstance(told, FirstToken))
    facts = EngineFacts(ATTENTIVE)
    told = facts.prefill(prompt_work(input_tokens), NOBODY)
    assert told.seconds == pytest.approx(first.at, rel=1e-9)
    assert told.stall_seconds < told.seconds


def test_prompts_beside_a_batch_take_a_token_of_each_step_for_each_who_decodes() -> None:
    facts = EngineFacts(GPU)
    assert facts.prefill(PromptWork(4096, 0), Batch(10, 0)).seconds == pytest.approx(
        4096 / 10_000 + 2 * 0.01 + 2 * 10 * 0.0002
    )
    assert facts.decode_seconds(Batch(10, 0)) == pytest.approx(0.01 + 10 * 0.0002)
    assert facts.decode_seconds(NOBODY) == facts.decode_seconds(Batch(1, 0))


@pytest.mark.parametrize(("ceiling", "length"), [(100, 100), (100, 3), (1024, 1024), (3000, 200), (3000, 2500)])
def test_a_sequence_never_holds_more_than_is_told(ceiling: int, length: int) -> None:
    for block_tokens in (1, 16):
        parameters = replace(GPU, block_tokens=block_tokens)
        model = Scheduler(parameters)
        model.take_permit(1)
        model.submit(Sequence(1, 500, ceiling, natural_end=NaturalEnd(length, FinishReason.EOS)), 0.0)
        most, ended = 0, False
        while not ended:
            at = model.next_step_at
            assert at is not None
            ended = any(isinstance(told, Ended) for told in model.advance(at))
            most = max(most, model.held_kv_tokens)
        assert EngineFacts(parameters).kv_tokens_of(500, ceiling, length) == most


@pytest.mark.parametrize("unit_tokens", [1, 100, 512])
@pytest.mark.parametrize("prefix_caching", [False, True])
def test_the_prompts_computed_again_are_those_of_the_engine(unit_tokens: int, *, prefix_caching: bool) -> None:
    per_token = StepTimes(step_seconds=1e-5, seconds_per_prefill_token=1, seconds_per_decoding_sequence=0)
    parameters = replace(GPU, step_times=per_token, prefix_caching=prefix_caching, max_batch_prefill_tokens=8192)
    blocks = PromptBlocks(tuple(range(1500 // unit_tokens)), unit_tokens) if prefix_caching else None
    model = Scheduler(parameters)
    model.take_permit(1)
    model.submit(Sequence(1, 1500, 4096, natural_end=NaturalEnd(3000, FinishReason.EOS), blocks=blocks), 0.0)
    told = [
        round(one.seconds) for one in model.advance(1e6) if isinstance(one, StepsEnded) and one.kind is StepKind.PREFILL
    ]
    repeats = EngineFacts(parameters).repeats_of(1500, 4096, 3000, 1, blocks)
    assert [one.after_tokens for one in repeats] == [1024, 2048]
    assert [1500, *(one.work.tokens for one in repeats)] == told
    assert EngineFacts(VllmParameters()).repeats_of(1500, 4096, 3000, 1, blocks) == ()


def test_vllm_takes_blocks_as_tokens_come() -> None:
    facts = EngineFacts(VllmParameters(max_num_seqs=7, max_num_batched_tokens=2000))
    assert facts.kv_tokens_of(100, 4000, 21) == 128
    assert (facts.most_sequences, facts.step_prefill_tokens) == (7, 2000)


def test_worth_is_what_short_prompts_would_bring_in_the_same_time() -> None:
    facts = EngineFacts(GPU)  # 0.1 ms a prompt token, 0.2 ms for each token of another sequence
    assert facts.worth_ratio(1001, 1, 1, prompt_work(1000), NOBODY) == pytest.approx(1.0, rel=1e-2)
    assert facts.worth_ratio(1500, 500, 1, prompt_work(1000), Batch(3, 0)) == pytest.approx(0.15 / (0.1 + 0.1))
    assert facts.worth_ratio(1500, 500, 1, prompt_work(1000, 900), Batch(3, 0)) == pytest.approx(0.15 / (0.01 + 0.1))
