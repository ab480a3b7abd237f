"""The scheduler's rules one at a time; steps take one second, so that expected times can be counted by hand."""

from dataclasses import replace
from math import inf

import pytest

from llmshed.simulation.cost import StepTimes
from llmshed.simulation.limits import OutputPlan, TotalTooLong
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import (
    ChunkQueued,
    Dropped,
    Ended,
    Failed,
    JoinReason,
    Result,
    StepKind,
    StepsEnded,
)
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Phase, Sequence

ONE_SECOND = StepTimes(step_seconds=1, seconds_per_prefill_token=0, seconds_per_decoding_sequence=0)


def scheduler(**changes: object) -> Scheduler:
    values: dict[str, object] = {"step_times": ONE_SECOND, "max_batch_prefill_tokens": 100, "kv_tokens": 20_000}
    return Scheduler(ReplicaParameters(**{**values, **changes}))  # type: ignore[arg-type]  # values are told by name


def put(
    replica: Scheduler, key: int, input_tokens: int, output: int | None = 4, *, at: float = 0, end: int | None = None
) -> None:
    assert replica.take_permit(key)
    natural = None if end is None else NaturalEnd(end, FinishReason.EOS)
    plan = replica.submit(Sequence(key, input_tokens, output, natural_end=natural), at)
    assert isinstance(plan, OutputPlan)


class Course:
    """What came of a run: results, and the instant of each token."""

    def __init__(self) -> None:
        self.results: list[Result] = []
        self.tokens: dict[int, list[float]] = {}

    def note(self, replica: Scheduler, at: float, results: list[Result]) -> None:
        self.results += results
        counts = {view.key: view.output_tokens for view in replica.sequences()}
        assert all(replica.output_tokens(key) == count for key, count in counts.items())
        for key, count in {**counts, **{ended.key: ended.output_tokens for ended in ends(results).values()}}.items():
            times = self.tokens.setdefault(key, [])
            times += [at] * (count - len(times))


def run(replica: Scheduler, until: float = inf, course: Course | None = None) -> Course:
    """Step by step to the end, with the invariants checked after each step."""
    course = Course() if course is None else course
    while (at := replica.next_step_at) is not None and at <= until:
        course.note(replica, at, replica.advance(at))
        assert replica.check() == ()
    return course


def ends(results: list[Result]) -> dict[int, Ended]:
    return {result.key: result for result in results if isinstance(result, Ended)}


def without_splits(results: list[Result]) -> list[Result]:
    """Add up calls that were told apart only because somebody asked in between."""
    merged: list[Result] = []
    for result in results:
        last = merged[-1] if merged else None
        if (
            isinstance(result, StepsEnded)
            and isinstance(last, StepsEnded)
            and result.kind is last.kind
            and not result.joined
        ):
            both = replace(last, count=last.count + result.count, seconds=last.seconds + result.seconds)
            merged[-1] = replace(both, failed=result.failed)
        else:
            merged.append(result)
    return merged


def test_one_sequence_gets_a_token_a_step_and_ends_at_its_ceiling() -> None:
    replica = scheduler()
    put(replica, 1, 10, 4)
    course = run(replica)
    assert course.tokens[1] == [1, 2, 3, 4]
    assert ends(course.results)[1] == Ended(1, FinishReason.LENGTH, 4, queued_at=0, started_at=0, at=4)
    assert (replica.permits_in_use, replica.held_kv_tokens, replica.batch_size, replica.queue_size) == (0, 0, 0, 0)
    assert replica.next_step_at is None


def test_the_model_may_end_before_the_ceiling() -> None:
    replica = scheduler()
    put(replica, 1, 10, 4, end=2)
    assert ends(run(replica).results)[1].reason is FinishReason.EOS
    put(replica, 2, 10, 4, end=9)
    assert ends(run(replica).results)[2].reason is FinishReason.LENGTH


def test_a_natural_end_on_the_last_permitted_token_counts_as_one() -> None:
    replica = scheduler()
    put(replica, 1, 10, 4, end=4)
    assert ends(run(replica).results)[1].reason is FinishReason.EOS


def test_permits_are_taken_before_anything_is_counted() -> None:
    replica = scheduler(max_concurrent_requests=2)
    assert replica.take_permit(1)
    assert replica.take_permit(2)
    assert not replica.take_permit(3)
    replica.leave(1)
    assert replica.take_permit(3)
    assert replica.check() == ()


def test_a_refused_prompt_gives_its_permit_back() -> None:
    replica = scheduler()
    replica.take_permit(1)
    assert isinstance(replica.submit(Sequence(1, 8190, 100), 0), TotalTooLong)
    assert replica.permits_in_use == 0
    assert replica.next_step_at is None


def test_kv_is_held_for_input_and_ceiling_less_one_from_the_first_step_to_the_end() -> None:
    replica = scheduler()
    put(replica, 1, 10, 50)
    assert replica.held_kv_tokens == 0
    replica.advance(0)
    assert replica.held_kv_tokens == 10 + 50 - 1
    replica.advance(49)
    assert replica.held_kv_tokens == 59
    replica.advance(50)
    assert replica.held_kv_tokens == 0


def test_kv_is_held_in_whole_blocks() -> None:
    replica = scheduler(block_tokens=16)
    put(replica, 1, 10, 50)
    replica.advance(0)
    assert replica.held_kv_tokens == 64


def test_a_large_head_blocks_small_ones_behind_it() -> None:
    replica = scheduler(kv_tokens=8192, max_batch_prefill_tokens=8192)
    put(replica, 1, 4000, 10)
    put(replica, 2, 8000, 10)
    put(replica, 3, 1, 1)
    ended = ends(run(replica).results)
    assert ended[1].at == 10
    assert ended[2].started_at == 10
    assert ended[3].started_at >= ended[2].started_at


def test_a_long_prompt_fills_every_step_so_that_nothing_else_starts() -> None:
    replica = scheduler()
    put(replica, 1, 1, 40)
    replica.advance(0)
    put(replica, 2, 500, 4, at=0.5)
    put(replica, 3, 1, 4, at=0.6)
    course = run(replica)
    # 99 tokens beside one decoding sequence, then 100 - 1 a step: 500 take six steps, from 1 to 7.
    assert course.tokens[2][0] == 7
    assert ends(course.results)[3].started_at == 6
    assert course.tokens[3][0] == 7
    # The decoding sequence is served in each of the mixed steps.
    assert course.tokens[1][:8] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_short_prompts_share_one_prefill_step() -> None:
    replica = scheduler()
    for key in range(5):
        put(replica, key, 20)
    course = run(replica)
    assert {course.tokens[key][0] for key in range(5)} == {1}
    assert next(r.joined for r in course.results if isinstance(r, StepsEnded)) == 5


def test_after_a_join_the_engine_decodes_once_before_it_looks_at_the_queue_again() -> None:
    replica = scheduler()
    put(replica, 1, 1, 40)
    replica.advance(0)
    put(replica, 2, 1, 40, at=0.5)
    replica.advance(1)
    put(replica, 3, 1, 40, at=1.5)
    course = run(replica, until=10)
    steps = [(r.kind, r.joined, r.join_reason) for r in course.results if isinstance(r, StepsEnded)]
    assert steps[:4] == [
        (StepKind.PREFILL, 1, JoinReason.CHUNKING),
        (StepKind.DECODE, 0, None),
        (StepKind.PREFILL, 1, JoinReason.CHUNKING),
        (StepKind.DECODE, 0, None),
    ]


def test_a_ceiling_above_a_chunk_overruns_to_the_next_multiple() -> None:
    replica = scheduler(version="3.3.5")
    put(replica, 1, 10, 1500)
    course = run(replica)
    assert ends(course.results)[1].output_tokens == 2048
    assert [r for r in course.results if isinstance(r, ChunkQueued)] == [ChunkQueued(1, 1034, 1024)]


@pytest.mark.parametrize("version", ["3.0.0", "3.1.0"])
def test_before_3_1_1_a_named_ceiling_runs_in_one_go(version: str) -> None:
    replica = scheduler(version=version)
    put(replica, 1, 10, 1500)
    course = run(replica)
    assert ends(course.results)[1].output_tokens == 1500
    assert not [r for r in course.results if isinstance(r, ChunkQueued)]


def test_a_chunk_waits_at_the_tail_and_works_its_own_output_through_again() -> None:
    replica = scheduler(kv_tokens=3100, max_input_tokens=2500, max_total_tokens=3000, max_batch_prefill_tokens=512)
    put(replica, 1, 10, 2048)
    replica.advance(0)
    put(replica, 2, 2100, 800, at=1)
    put(replica, 3, 10, 10, at=2)
    course = run(replica)
    ended = ends(course.results)
    gap = course.tokens[1][1024] - course.tokens[1][1023]
    assert ended[2].started_at == 1024
    assert gap > 800
    assert ended[1].output_tokens == 2048
    assert ended[1].queued_at == 0
    assert ended[1].started_at == 0


def test_an_answer_ends_by_length_when_it_may_not_go_on() -> None:
    replica = scheduler(max_input_tokens=1500, max_total_tokens=3000, max_batch_prefill_tokens=3000)
    put(replica, 1, 700, 5000)
    ended = ends(run(replica).results)[1]
    assert (ended.output_tokens, ended.reason) == (1024, FinishReason.LENGTH)


def test_a_filled_ceiling_ends_where_the_total_ends() -> None:
    replica = scheduler(max_input_tokens=2999, max_total_tokens=3000, max_batch_prefill_tokens=3000)
    put(replica, 1, 700, None)
    assert ends(run(replica).results)[1].output_tokens == 2300


def test_a_running_sequence_whose_client_left_keeps_its_kv_until_its_next_token() -> None:
    replica = scheduler()
    put(replica, 1, 10, 50)
    replica.advance(2)
    replica.leave(1)
    assert (replica.permits_in_use, replica.held_kv_tokens) == (0, 59)
    assert Dropped(1, while_queued=False) in replica.advance(3)
    assert replica.held_kv_tokens == 0
    assert replica.check() == ()


def test_a_waiting_sequence_whose_client_left_stays_in_the_queue_until_it_is_in_front() -> None:
    replica = scheduler(kv_tokens=8192, max_batch_prefill_tokens=8192)
    put(replica, 1, 8000, 10)
    put(replica, 2, 8000, 10)
    put(replica, 3, 1, 10)
    replica.advance(0)
    replica.leave(3)
    assert (replica.permits_in_use, replica.queue_size) == (2, 2)
    results = run(replica, until=10).results
    # At 10 the second one starts and fills the budget; the third is met once it is in front, one look later.
    assert Dropped(3, while_queued=True) in results + run(replica).results
    assert 3 not in run(replica).tokens


def test_when_a_blocking_head_leaves_those_behind_it_start_with_the_next_step() -> None:
    replica = scheduler(kv_tokens=8192, max_batch_prefill_tokens=8192)
    put(replica, 1, 4000, 500)
    replica.advance(0)
    put(replica, 2, 8000, 10, at=0.5)
    put(replica, 3, 1, 10, at=0.5)
    replica.advance(10.5)
    replica.leave(2)
    course = run(replica)
    assert ends(course.results)[3].started_at == 11
    assert ends(course.results)[1].at == 500


def test_a_stretch_of_decodes_is_one_change_that_only_what_could_start_cuts_short() -> None:
    replica = scheduler(kv_tokens=8192, max_batch_prefill_tokens=8192)
    put(replica, 1, 4000, 500)
    put(replica, 2, 4100, 10)
    replica.advance(1)
    assert (replica.next_step_at, replica.next_change_at) == (2, 500)
    # The head waits for KV: whoever joins the line behind it can start no sooner.
    put(replica, 3, 1, 1, at=1)
    assert replica.next_change_at == 500
    replica.advance(200.5)
    assert (replica.output_tokens(1), replica.next_step_at, replica.next_change_at) == (200, 201, 500)
    replica.stall(200.5, 7)
    assert (replica.next_step_at, replica.next_change_at) == (207.5, 207.5)
    replica.advance(207.5)
    assert (replica.output_tokens(1), replica.next_change_at) == (201, 207.5 + 299)


def test_leaving_twice_or_after_the_end_changes_nothing() -> None:
    replica = scheduler()
    put(replica, 1, 10, 2)
    run(replica)
    replica.leave(1)
    replica.leave(1)
    replica.leave(99)
    assert replica.check() == ()


def test_a_failed_step_loses_every_sequence_of_the_batch_and_none_that_waits() -> None:
    replica = scheduler(kv_tokens=8192, max_batch_prefill_tokens=8192)
    put(replica, 1, 2000, 10)
    put(replica, 2, 2000, 10)
    put(replica, 3, 8000, 10)
    replica.advance(1)
    replica.fail_step("CUDA out of memory")
    results = replica.advance(2)
    assert [r for r in results if isinstance(r, Failed)] == [
        Failed(1, "CUDA out of memory"),
        Failed(2, "CUDA out of memory"),
    ]
    assert ends(run(replica).results)[3].output_tokens == 10


def test_a_stall_holds_the_running_step_and_then_time_goes_on() -> None:
    replica = scheduler()
    put(replica, 1, 10, 3)
    replica.advance(0.5)
    replica.stall(0.5, 10)
    assert replica.advance(10) == []
    assert run(replica).tokens[1] == [10.5, 11.5, 12.5]


def test_an_endless_stall_ends_with_resume() -> None:
    replica = scheduler()
    replica.stall(0, inf)
    put(replica, 1, 10, 1)
    assert replica.next_step_at is None
    replica.resume(5)
    assert run(replica).tokens[1] == [6]


def test_a_late_call_catches_up() -> None:
    on_time, late = scheduler(), scheduler()
    put(on_time, 1, 250, 7)
    put(late, 1, 250, 7)
    assert without_splits(run(on_time).results) == without_splits(late.advance(1000))


def test_without_chunked_prefill_a_join_pauses_what_runs() -> None:
    replica = scheduler(version="2.4.0", max_input_tokens=100, max_total_tokens=200)
    put(replica, 1, 10, 100)
    put(replica, 2, 10, 100)
    put(replica, 3, 10, 100)
    put(replica, 4, 10, 100)
    replica.advance(0)
    put(replica, 5, 10, 4, at=0.5)
    course = run(replica, until=6)
    # floor(4 x 0.3) = 1 waiting suffices: the join takes the second from 1 to 2, in which nobody decodes.
    assert course.tokens[5][0] == 2
    assert course.tokens[1][:3] == [1, 3, 4]
    assert (StepKind.PREFILL, JoinReason.BACKPRESSURE) in [
        (r.kind, r.join_reason) for r in course.results if isinstance(r, StepsEnded)
    ]


def test_without_chunked_prefill_too_few_wait_until_enough_steps_have_passed() -> None:
    replica = scheduler(version="1.4.5", max_input_tokens=100, max_total_tokens=200, kv_tokens=4000)
    for key in range(1, 5):
        put(replica, key, 10, 100)
    replica.advance(0)
    put(replica, 5, 10, 4, at=0.5)
    course = run(replica)
    # floor(4 x 1.2) = 4 must wait, one does: it joins after 20 steps as "wait exceeded".
    assert ends(course.results)[5].started_at == 20
    assert JoinReason.WAIT_EXCEEDED in [r.join_reason for r in course.results if isinstance(r, StepsEnded)]


def test_views_tell_where_each_sequence_is() -> None:
    replica = scheduler(kv_tokens=8192, max_batch_prefill_tokens=512)
    replica.take_permit(9)
    put(replica, 1, 8000, 10)
    put(replica, 2, 8000, 10)
    replica.advance(0)
    phases = {view.key: (view.phase, view.kv_tokens) for view in replica.sequences()}
    assert phases == {9: (Phase.VALIDATING, 0), 1: (Phase.PREFILL, 8009), 2: (Phase.QUEUED, 0)}
