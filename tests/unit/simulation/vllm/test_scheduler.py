"""The simulated vLLM replica as a server in front of it sees it."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from llmshed.simulation.cost import StepTimes
from llmshed.simulation.limits import InputTooLong, OutputPlan
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import Dropped, Ended, Failed, FirstToken, Preempted, Result, StepKind, StepsEnded
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Phase, Sequence
from llmshed.simulation.vllm.parameters import SchedulingPolicy, VllmParameters
from llmshed.simulation.vllm.scheduler import VllmScheduler

STEP = 0.1
SMALL = VllmParameters(
    max_num_seqs=2,
    max_num_batched_tokens=100,
    max_model_len=160,
    kv_tokens=11 * 16,
    step_times=StepTimes(STEP, seconds_per_prefill_token=0, seconds_per_decoding_sequence=0),
)
"""Two seats, ten usable blocks of 16 tokens, and a tenth of a second for every step."""


def about(seconds: float) -> Any:
    """Return what equals a time but for rounding."""
    return pytest.approx(seconds)


def ask(replica: VllmScheduler, key: int, now: float, input_tokens: int = 10, output: int = 5) -> None:
    assert replica.take_permit(key)
    assert isinstance(replica.submit(Sequence(key, input_tokens, output), now), OutputPlan)


def finish(replica: VllmScheduler) -> list[Result]:
    results: list[Result] = []
    while (at := replica.next_change_at) is not None:
        results += replica.advance(at)
    assert replica.check() == ()
    assert (replica.held_kv_tokens, replica.queue_size, replica.batch_size) == (0, 0, 0)
    return results


def ends(results: list[Result]) -> dict[int, float]:
    return {result.key: result.at for result in results if isinstance(result, Ended)}


def test_a_lone_sequence_is_prefilled_and_then_decoded_in_one_stretch() -> None:
    replica = VllmScheduler(SMALL)
    ask(replica, 1, 7.0)
    assert replica.next_step_at == 7.0
    assert replica.advance(7.0) == []
    assert (replica.queue_size, replica.batch_size, replica.held_kv_tokens) == (0, 1, 16)
    assert finish(replica) == [
        StepsEnded(StepKind.PREFILL, 1, about(STEP), 1, None, failed=False),
        FirstToken(1, about(7.1)),
        StepsEnded(StepKind.DECODE, 4, about(4 * STEP), 0, None, failed=False),
        Ended(1, FinishReason.LENGTH, 5, 7.0, 7.0, about(7.5)),
    ]


def test_a_caller_that_wants_single_tokens_asks_for_them_after_each_step() -> None:
    replica = VllmScheduler(SMALL)
    ask(replica, 1, 0.0)
    produced = []
    while (at := replica.next_step_at) is not None:
        produced.append(replica.output_tokens(1))
        replica.advance(at)
    assert produced == [0, 0, 1, 2, 3, 4]
    assert replica.output_tokens(1) == 0, "it is live no longer"


def test_the_next_change_lies_behind_the_steps_that_only_decode() -> None:
    replica = VllmScheduler(SMALL)
    ask(replica, 1, 0.0, output=50)
    replica.advance(0.0)
    replica.advance(0.1)
    assert replica.next_step_at == about(0.2)
    assert replica.next_change_at == about(5.0)


def test_the_model_stops_by_itself_and_says_so() -> None:
    replica = VllmScheduler(SMALL)
    replica.take_permit(1)
    replica.submit(Sequence(1, 10, 50, natural_end=NaturalEnd(3, FinishReason.EOS)), 0.0)
    (ended,) = [result for result in finish(replica) if isinstance(result, Ended)]
    assert (ended.reason, ended.output_tokens) == (FinishReason.EOS, 3)


def test_an_arrival_joins_at_the_next_step_even_out_of_a_long_stretch() -> None:
    replica = VllmScheduler(SMALL)
    ask(replica, 1, 0.0, output=100)
    replica.advance(1.05)
    ask(replica, 2, 1.05, output=1)
    # The step in progress ends at 1.1; the prompt is the next.
    assert replica.next_change_at == about(1.1)
    assert ends(replica.advance(1.35))[2] == about(1.2)


def test_an_arrival_behind_one_that_cannot_join_does_not_interrupt_the_stretch() -> None:
    replica = VllmScheduler(SMALL)
    ask(replica, 1, 0.0, output=30)
    ask(replica, 2, 0.0, output=30)
    ask(replica, 3, 0.0)
    replica.advance(0.15)
    before = replica.next_change_at
    ask(replica, 4, 0.15)
    assert replica.next_change_at == before


def test_a_more_urgent_arrival_takes_the_head_of_the_line() -> None:
    replica = VllmScheduler(replace(SMALL, policy=SchedulingPolicy.PRIORITY))
    for key, priority in ((1, 5), (2, 5), (3, 5), (4, 0)):
        replica.take_permit(key)
        replica.submit(Sequence(key, 10, 5, priority=priority), 0.0)
    # Nobody ran yet: the urgent one and the earliest of the others take the two seats.
    assert list(ends(finish(replica))) == [4, 1, 2, 3]


def test_unfinished_sequences_count_against_the_limit_and_the_next_is_refused() -> None:
    replica = VllmScheduler(replace(SMALL, max_num_queued_reqs=3))
    for key in range(3):
        ask(replica, key, 0.0)
    assert not replica.take_permit(3)
    replica.advance(0.0)
    assert not replica.take_permit(3), "running ones count too"
    finish(replica)
    assert replica.take_permit(3)


def test_prompt_tokens_without_a_first_token_count_against_their_limit_before_the_new_one_is_looked_at() -> None:
    replica = VllmScheduler(replace(SMALL, max_num_queued_tokens=100))
    ask(replica, 1, 0.0, input_tokens=99)
    ask(replica, 2, 0.0, input_tokens=150)
    assert not replica.take_permit(3)
    replica.advance(0.1)
    assert not replica.take_permit(3), "the first has its token, the second waits for blocks"
    replica.leave(2)
    assert replica.take_permit(3)


def test_a_client_that_leaves_frees_its_permit_at_once() -> None:
    replica = VllmScheduler(replace(SMALL, max_num_queued_reqs=1))
    ask(replica, 1, 0.0)
    replica.advance(0.05)
    replica.leave(1)
    assert (replica.permits_in_use, replica.batch_size) == (0, 1)
    assert replica.take_permit(2)


def test_the_engine_hears_of_it_between_two_steps_before_it_looks_at_the_tokens() -> None:
    replica = VllmScheduler(SMALL)
    ask(replica, 1, 0.0, output=2)
    replica.advance(0.15)
    replica.leave(1)
    results = replica.advance(0.2)
    assert Dropped(1, while_queued=False) in results
    assert ends(results) == {}, "its last token came with that step"
    assert finish(replica) == []


def test_a_waiting_one_that_left_makes_room_at_the_next_step() -> None:
    replica = VllmScheduler(SMALL)
    ask(replica, 1, 0.0, input_tokens=90, output=50)
    replica.advance(0.05)
    ask(replica, 2, 0.05, input_tokens=100)
    ask(replica, 3, 0.05)
    replica.advance(0.35)
    assert (replica.batch_size, replica.queue_size) == (1, 2)
    replica.leave(2)
    assert replica.queue_size == 2
    assert Dropped(2, while_queued=True) in replica.advance(0.4)
    assert (replica.batch_size, replica.queue_size) == (2, 0)


def test_leaving_twice_before_submission_or_after_the_end_is_nothing() -> None:
    replica = VllmScheduler(SMALL)
    replica.take_permit(1)
    replica.leave(1)
    assert replica.permits_in_use == 0
    ask(replica, 2, 0.0)
    replica.advance(0.05)
    replica.leave(2)
    replica.leave(2)
    assert [result for result in finish(replica) if isinstance(result, Dropped)] == [Dropped(2, while_queued=False)]
    replica.leave(2)
    replica.leave(99)
    assert finish(replica) == []


def test_what_is_too_long_leaves_nothing_behind() -> None:
    replica = VllmScheduler(SMALL)
    replica.take_permit(1)
    assert replica.submit(Sequence(1, 160, 1), 0.0) == InputTooLong(159, 160)
    assert (replica.permits_in_use, replica.next_step_at, replica.sequences()) == (0, None, [])


def test_ids_of_no_size_are_refused_and_the_sequence_can_be_submitted_again() -> None:
    replica = VllmScheduler(SMALL)
    replica.take_permit(1)
    with pytest.raises(ValueError, match="unit_tokens"):
        replica.submit(Sequence(1, 10, 5, blocks=PromptBlocks((1,), 0)), 0.0)
    assert replica.check() == ()
    assert isinstance(replica.submit(Sequence(1, 10, 5), 0.0), OutputPlan)


@pytest.mark.parametrize(("length", "cached"), [(16, 0), (17, 16), (80, 64), (81, 80), (100, 80)])
def test_full_blocks_are_said_to_be_cached_as_soon_as_they_are_computed(length: int, cached: int) -> None:
    per_token = replace(SMALL, step_times=StepTimes(STEP, 0.01, 0))
    prompt = PromptBlocks(tuple(range(length)), 1)
    replica = VllmScheduler(per_token)
    assert replica.cached_tokens(prompt, length) == replica.cached_tokens(None, length) == 0
    assert replica.take_permit(1)
    replica.submit(Sequence(1, 90, 3, blocks=PromptBlocks(tuple(range(90)), 1)), 0.0)
    replica.advance(STEP + 0.9)
    assert replica.cached_tokens(prompt, length) == min(cached, 80)
    finish(replica)
    assert replica.cached_tokens(prompt, length) == cached, "and they are found after its end"
    assert replica.take_permit(2)
    replica.submit(Sequence(2, length, 1, blocks=prompt), 10.0)
    assert ends(finish(replica))[2] == about(10.0 + STEP + 0.01 * (length - cached))
    without = VllmScheduler(replace(per_token, prefix_caching=False))
    assert without.cached_tokens(prompt, length) == 0


def test_a_stall_keeps_the_step_in_progress_from_ending() -> None:
    replica = VllmScheduler(SMALL)
    ask(replica, 1, 0.0)
    replica.advance(0.25)
    replica.stall(0.25, 10)
    assert replica.next_change_at == about(10.25)
    assert replica.advance(5.0) == []
    (stalled, *_) = replica.advance(10.25)
    assert stalled == StepsEnded(StepKind.DECODE, 1, about(10.05), 0, None, failed=False)
    assert ends(finish(replica))[1] == about(10.25 + 2 * STEP)


def test_a_stall_without_an_end_ends_with_a_word() -> None:
    replica = VllmScheduler(SMALL)
    ask(replica, 1, 0.0)
    replica.advance(0.25)
    replica.stall(0.25, inf)
    assert (replica.next_step_at, replica.next_change_at) == (None, None)
    assert replica.advance(1000.0) == []
    replica.resume(2000.0)
    assert replica.next_step_at == 2000.0


def test_nothing_begins_in_a_stall() -> None:
    replica = VllmScheduler(SMALL)
    replica.stall(0.0, 3)
    ask(replica, 1, 1.0)
    assert replica.advance(2.0) == []
    assert ends(finish(replica))[1] == about(3.5)


def test_a_failed_step_is_the_end_of_the_engine_and_of_all_that_it_had() -> None:
    replica = VllmScheduler(replace(SMALL, max_num_queued_tokens=1000))
    for key in range(4):
        ask(replica, key, 0.0)
    replica.advance(0.25)
    replica.leave(1)
    replica.leave(3)
    replica.fail_step("CUDA error")
    results = replica.advance(0.301)
    assert results == [
        StepsEnded(StepKind.DECODE, 1, about(STEP), 0, None, failed=True),
        Failed(0, "CUDA error"),
        Dropped(1, while_queued=False),
        Failed(2, "CUDA error"),
        Dropped(3, while_queued=True),
    ]
    assert (replica.permits_in_use, replica.check()) == (0, ())
    ask(replica, 9, 1.0)
    assert ends(finish(replica))[9] == about(1.5)


def test_a_failure_asked_for_while_idle_meets_the_next_step() -> None:
    replica = VllmScheduler(SMALL)
    replica.fail_step("out of memory")
    ask(replica, 1, 0.0)
    assert Failed(1, "out of memory") in finish(replica)


def test_a_preempted_sequence_tells_when_and_still_gives_all_its_tokens() -> None:
    replica = VllmScheduler(replace(SMALL, prefix_caching=False))
    ask(replica, 1, 0.0, input_tokens=60, output=60)
    ask(replica, 2, 0.0, input_tokens=40, output=60)
    results = finish(replica)
    # 4 + 3 blocks, and 3 free. Decode i computes tokens 60 + i and 40 + i: the 65th, 49th and 81st take the three, in
    # decodes 5, 9 and 21. For its own 65th, in decode 25, the second lacks one. It has 25 tokens by then.
    (preempted,) = [result for result in results if isinstance(result, Preempted)]
    assert (preempted.key, preempted.at) == (2, about(25 * STEP))
    ended = {result.key: result for result in results if isinstance(result, Ended)}
    assert [ended[key].output_tokens for key in (1, 2)] == [60, 60]
    assert sum(1 for result in results if isinstance(result, FirstToken)) == 2
    # It waits until the first ends after 60 steps, and computes 40 + 25 tokens in one step, which gives the 26th.
    assert ended[1].at == about(60 * STEP)
    assert ended[2].at == about((60 + 35) * STEP)
    assert ended[2].started_at == 0.0


def test_every_live_sequence_is_in_view() -> None:
    replica = VllmScheduler(SMALL)
    for key in range(3):
        ask(replica, key, 0.0)
    replica.take_permit(3)
    replica.advance(0.25)
    replica.leave(2)
    views = replica.sequences()
    assert [(view.key, view.phase, view.output_tokens, view.kv_tokens, view.abandoned) for view in views] == [
        (3, Phase.VALIDATING, 0, 0, False),
        (0, Phase.DECODE, 2, 16, False),
        (1, Phase.DECODE, 2, 16, False),
        (2, Phase.QUEUED, 0, 0, True),
    ]
    assert replica.check() == ()


def test_a_broken_book_is_told() -> None:
    replica = VllmScheduler(SMALL)
    ask(replica, 1, 0.0)
    replica.advance(0.0)
    replica._permits.add(77)
    replica._unanswered_tokens += 1
    assert len(replica.check()) == 2
