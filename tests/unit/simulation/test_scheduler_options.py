"""Options of the scheduler one at a time; steps take one second unless a test says otherwise."""

from math import inf

import pytest

from llmshed.simulation.attention import Attention
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.limits import OutputPlan
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import ChunkQueued, Dropped, Ended, FirstToken, Result, StepsEnded
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence

ONE_SECOND = StepTimes(step_seconds=1, seconds_per_prefill_token=0, seconds_per_decoding_sequence=0)
PER_TOKEN = StepTimes(step_seconds=1, seconds_per_prefill_token=0.01, seconds_per_decoding_sequence=0)


def scheduler(**changes: object) -> Scheduler:
    values: dict[str, object] = {"step_times": ONE_SECOND, "max_batch_prefill_tokens": 8192, "kv_tokens": 20_000}
    return Scheduler(ReplicaParameters(**{**values, **changes}))  # type: ignore[arg-type]  # values are told by name


def put(
    replica: Scheduler, key: int, input_tokens: int, output: int | None = 4, *, at: float = 0, ids: tuple[int, ...] = ()
) -> None:
    assert replica.take_permit(key)
    blocks = PromptBlocks(ids, 1) if ids else None
    assert isinstance(replica.submit(Sequence(key, input_tokens, output, blocks=blocks), at), OutputPlan)


def run(replica: Scheduler, until: float = inf) -> list[Result]:
    results: list[Result] = []
    while (at := replica.next_change_at) is not None and at <= until:
        results += replica.advance(at)
        assert replica.check() == ()
    return results


def first(results: list[Result]) -> dict[int, float]:
    return {result.key: result.at for result in results if isinstance(result, FirstToken)}


def ends(results: list[Result]) -> dict[int, Ended]:
    return {result.key: result for result in results if isinstance(result, Ended)}


def prefill_seconds(results: list[Result]) -> list[float]:
    return [result.seconds - 1 for result in results if isinstance(result, StepsEnded) and result.joined]


@pytest.mark.parametrize(
    "changes",
    [{"version": "2.4.0"}, {"chunked_prefill": False}, {"attention": Attention.PAGED, "block_tokens": 16}],
)
def test_without_chunked_prefill_a_join_pauses_every_stream(changes: dict[str, object]) -> None:
    replica = scheduler(**changes)
    for key in range(4):
        put(replica, key, 10, 9)
    replica.advance(0)
    put(replica, 9, 5000, 4, at=0.5)
    results = run(replica)
    # The join takes the second from 1 to 2. So eight more tokens of the others end at 10, not at 9.
    assert first(results)[9] == 2
    assert {ends(results)[key].at for key in range(4)} == {10}


def test_with_chunked_prefill_streams_go_on_beside_a_prompt() -> None:
    replica = scheduler()
    for key in range(4):
        put(replica, key, 10, 9)
    replica.advance(0)
    put(replica, 9, 5000, 4, at=0.5)
    results = run(replica)
    assert first(results)[9] == 2
    assert {ends(results)[key].at for key in range(4)} == {9}


def test_a_client_that_leaves_during_a_pause_is_noticed_at_its_next_token() -> None:
    replica = scheduler(chunked_prefill=False)
    for key in range(4):
        put(replica, key, 10, 9)
    replica.advance(0)
    put(replica, 9, 5000, 4, at=0.5)
    replica.advance(1.5)
    replica.leave(0)
    assert Dropped(0, while_queued=False) not in replica.advance(2)
    assert Dropped(0, while_queued=False) in replica.advance(3)


def test_a_batch_from_idle_has_no_more_than_its_most() -> None:
    replica = scheduler(max_batch_size=2)
    for key in range(5):
        put(replica, key, 10, 9)
    replica.advance(0)
    assert replica.batch_size == 2
    # With chunked prefill TGI looks at the most only then.
    replica.advance(1)
    assert replica.batch_size == 5


def test_without_chunked_prefill_a_batch_never_has_more_than_its_most() -> None:
    replica = scheduler(max_batch_size=2, chunked_prefill=False)
    for key in range(5):
        put(replica, key, 10, 9)
    most = 0
    while (at := replica.next_step_at) is not None:
        replica.advance(at)
        most = max(most, replica.batch_size)
    assert most == 2


def test_guesses_that_prove_right_shorten_an_answer() -> None:
    replica = scheduler(speculate=3, accepted_tokens=1.5)
    put(replica, 1, 10, 21)
    # One token with the prompt, twenty at 2.5 a step: eight steps.
    assert ends(run(replica))[1] == Ended(1, FinishReason.LENGTH, 21, queued_at=0, started_at=0, at=9)


def test_a_natural_end_within_a_step_cuts_what_was_guessed_beyond_it() -> None:
    replica = scheduler(speculate=3, accepted_tokens=3.0)
    replica.take_permit(1)
    replica.submit(Sequence(1, 10, 100, natural_end=NaturalEnd(7, FinishReason.EOS)), 0)
    replica.advance(2)
    assert replica.output_tokens(1) == 5
    ended = ends(run(replica))[1]
    assert (ended.output_tokens, ended.reason, ended.at) == (7, FinishReason.EOS, 3)


def test_guesses_need_room_in_the_kv() -> None:
    replica = scheduler(speculate=3)
    put(replica, 1, 10, 50)
    replica.advance(0)
    assert replica.held_kv_tokens == 10 + 50 + 3 - 1


def test_a_maximal_request_with_guesses_never_fits_and_blocks_the_queue_for_ever() -> None:
    replica = scheduler(speculate=2, kv_tokens=8192)
    put(replica, 1, 7168, 1024)
    put(replica, 2, 10, 4)
    assert run(replica) == []
    assert (replica.queue_size, replica.batch_size, replica.next_step_at) == (2, 0, None)
    put(replica, 3, 10, 4, at=100)
    assert run(replica) == []
    # Once its client has left, it is found in front as soon as something makes the engine look.
    replica.leave(1)
    assert run(replica) == []
    put(replica, 4, 10, 4, at=200)
    results = run(replica)
    assert Dropped(1, while_queued=True) in results
    assert ends(results).keys() == {2, 3, 4}


def test_without_guesses_the_same_request_fits() -> None:
    replica = scheduler(kv_tokens=8192)
    put(replica, 1, 7168, 1024)
    assert ends(run(replica))[1].output_tokens == 1024


@pytest.mark.parametrize("block", [1, 16, 64, 256, 48])
def test_kv_is_held_in_blocks_of_any_size(block: int) -> None:
    replica = scheduler(block_tokens=block)
    put(replica, 1, 300, 50)
    replica.advance(0)
    assert replica.held_kv_tokens == -(-349 // block) * block


def test_a_prompt_seen_before_costs_one_token_once_the_first_has_ended() -> None:
    replica = scheduler(prefix_caching=True, step_times=PER_TOKEN)
    prompt = tuple(range(500))
    put(replica, 1, 500, ids=prompt)
    put(replica, 2, 500, at=0, ids=prompt)
    results = run(replica)
    # Both run at once: neither finds what the other computes.
    assert prefill_seconds(results) == [pytest.approx(10.0)]
    put(replica, 3, 500, at=100, ids=prompt)
    assert prefill_seconds(run(replica)) == [pytest.approx(0.01)]


def test_a_prompt_that_asks_for_no_cache_neither_finds_nor_leaves_anything() -> None:
    replica = scheduler(prefix_caching=True, step_times=PER_TOKEN)
    put(replica, 1, 500)
    run(replica)
    put(replica, 2, 500, at=100, ids=tuple(range(500)))
    assert prefill_seconds(run(replica)) == [pytest.approx(5.0)]
    put(replica, 3, 500, at=200)
    assert prefill_seconds(run(replica)) == [pytest.approx(5.0)]


def test_without_the_cache_the_same_prompt_costs_the_same_again() -> None:
    replica = scheduler(step_times=PER_TOKEN)
    put(replica, 1, 500, ids=tuple(range(500)))
    run(replica)
    put(replica, 2, 500, at=100, ids=tuple(range(500)))
    assert prefill_seconds(run(replica)) == [pytest.approx(5.0)]


def test_the_next_turn_works_through_the_previous_answer_again() -> None:
    replica = scheduler(prefix_caching=True, step_times=PER_TOKEN)
    first_turn = tuple(range(500))
    put(replica, 1, 500, 200, ids=first_turn)
    run(replica)
    # The answer, 200 tokens that both sides know, and a question of 30: of the turn before only the prompt is cached.
    put(replica, 2, 730, at=1000, ids=(*first_turn, *range(1000, 1230)))
    assert prefill_seconds(run(replica)) == [pytest.approx(2.3)]


def test_a_chunk_queued_again_finds_its_prompt_but_not_its_own_output() -> None:
    replica = scheduler(prefix_caching=True, step_times=PER_TOKEN)
    put(replica, 1, 500, 3000, ids=tuple(range(500)))
    results = run(replica)
    assert [(r.input_tokens, r.chunk_tokens) for r in results if isinstance(r, ChunkQueued)] == [
        (1524, 1024),
        (2548, 1024),
    ]
    # 500 at first; then twice the 1,024 tokens of the chunk just before, since older ones were part of a prompt.
    assert prefill_seconds(results) == [pytest.approx(5.0), pytest.approx(10.24), pytest.approx(10.24)]


@pytest.mark.parametrize("length", [1, 499, 500, 501, 730])
def test_what_is_said_to_be_cached_is_what_is_not_computed(length: int) -> None:
    replica = scheduler(prefix_caching=True, step_times=PER_TOKEN)
    put(replica, 1, 500, ids=tuple(range(500)))
    longer = PromptBlocks(tuple(range(length)), 1)
    assert replica.cached_tokens(longer, length) == 0, "the first has not ended"
    run(replica)
    cached = replica.cached_tokens(longer, length)
    assert cached == min(500, length - 1)
    put(replica, 2, length, at=100, ids=longer.ids)
    assert prefill_seconds(run(replica)) == [pytest.approx((length - cached) * 0.01)]


def test_without_a_cache_or_ids_nothing_is_said_to_be_cached() -> None:
    prompt = PromptBlocks(tuple(range(500)), 1)
    for replica, asked in ((scheduler(), prompt), (scheduler(prefix_caching=True), None)):
        put(replica, 1, 500, ids=prompt.ids)
        run(replica)
        assert replica.cached_tokens(asked, 500) == 0


def test_attention_counts_the_cached_tokens_before_a_piece() -> None:
    pairs = StepTimes(1, 0, 0, seconds_per_attention_pair=1e-6)
    replica = scheduler(prefix_caching=True, step_times=pairs)
    put(replica, 1, 1000, ids=tuple(range(1000)))
    run(replica)
    put(replica, 2, 1200, at=100, ids=tuple(range(1200)))
    # 200 tokens attend to 1,000 cached ones and to themselves.
    assert prefill_seconds(run(replica)) == [pytest.approx((200 * 1000 + 200 * 201 / 2) * 1e-6)]


def test_each_decode_step_is_longer_by_the_tokens_of_the_one_before_it() -> None:
    resident = StepTimes(1, 0, 0, seconds_per_resident_token=0.001)
    replica = scheduler(step_times=resident)
    put(replica, 1, 100, 4)
    put(replica, 2, 200, 4)
    replica.advance(0)
    replica.advance(1)
    instants = []
    while (at := replica.next_step_at) is not None:
        instants.append(at)
        replica.advance(at)
    # 302 tokens are resident after the prompts and their first tokens, two more with each step.
    assert instants == [pytest.approx(at) for at in (1 + 1.302, 1 + 1.302 + 1.304, 1 + 1.302 + 1.304 + 1.306)]


def test_an_end_beside_a_long_prompt_lets_a_newcomer_in_who_then_goes_first() -> None:
    replica = scheduler(max_batch_prefill_tokens=100)
    put(replica, 0, 10, 4)
    put(replica, 1, 1000, 1)
    put(replica, 2, 150, 1)
    results = run(replica)
    # 0 and 90 tokens of 1 begin at 0; 1 gets 99 with each step. 0 ends at 4, so that one token of 2 joins; after it 2
    # gets 99 and 50, and 1 gets 1 and 49. Of 1 are then left 1000 - 90 - 3 * 99 - 99 - 1 - 49 = 464: five steps.
    assert [ends(results)[key].at for key in range(3)] == [4, 12, 7]
    assert first(results)[2] == 7


def test_prefixes_that_many_share_count_once_for_each_until_nobody_more_may_join() -> None:
    replica = scheduler(kv_tokens=2000, max_total_tokens=1100, max_input_tokens=1000, prefix_caching=True)
    ids = tuple(range(900))
    put(replica, 0, 900, 1, ids=ids)
    run(replica)
    for key in range(1, 5):
        put(replica, key, 900, 20 + key, at=10, ids=ids)
    run(replica, 10)
    # From idle nothing is counted: all four begin, each with room for 900 and its output less one.
    assert replica.held_kv_tokens == 920 + 921 + 922 + 923
    put(replica, 9, 5, 5, at=10.5)
    results = run(replica)
    # There is room for its nine tokens all along. When two have ended the others hold 1,845 of 2,000.
    assert first(results)[9] == ends(results)[2].at + 1


def test_too_few_that_the_cache_makes_small_join_one_step_later() -> None:
    replica = scheduler(version="2.4.0", prefix_caching=True, max_batch_prefill_tokens=8191)
    for key in range(10):
        put(replica, key, 1, 50)
    replica.advance(0)
    for key in range(10, 13):
        put(replica, key, 4000, 50, at=0.5, ids=tuple(range(10_000 * key, 10_000 * key + 4000)))
    results = run(replica, 10)
    # Three have to wait beside ten, and two fill a step. Put back at 1, all of them are taken to be cached at 2.
    assert {first(results)[key] for key in range(10, 13)} == {3}


def test_who_left_behind_too_few_is_found_by_the_next_look() -> None:
    replica = scheduler(version="2.4.0")
    for key in range(10):
        put(replica, key, 1, 50)
    replica.advance(0)
    for key in range(10, 13):
        put(replica, key, 3000, 50, at=0.5)
    # Three have to wait beside ten, and only two of them fit a step: they are put back at 1 and at 2.
    assert not any(isinstance(result, Dropped) for result in replica.advance(2.5))
    replica.leave(11)
    assert [result for result in run(replica, 3) if isinstance(result, Dropped)] == [Dropped(11, while_queued=True)]
