"""The simulated vLLM replica: it gives what the slow way gives, and keeps its books under anything."""

from collections import Counter
from dataclasses import dataclass, replace

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fakes.naive_vllm import NaiveVllm
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.limits import OutputPlan
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import Dropped, Ended, Failed, FirstToken, Preempted, Result, StepsEnded
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Phase, Sequence
from llmshed.simulation.vllm.parameters import SchedulingPolicy, VllmParameters
from llmshed.simulation.vllm.scheduler import VllmScheduler

TIMES = StepTimes(0.02, 0.001, 0.000_3, 0.003, 0.000_01, 0.000_02)


@st.composite
def replicas(draw: st.DrawFn, *, thresholds: bool) -> VllmParameters:
    """Small replicas of any kind, so that everything happens within a few sequences."""
    block = draw(st.sampled_from([1, 2, 4, 7, 16]))
    max_model_len = draw(st.integers(8, 60))
    usable = -(-(max_model_len - 1) // block) + draw(st.integers(0, 100 // block))
    seqs = draw(st.integers(1, 6))
    chunked = draw(st.booleans())
    return VllmParameters(
        max_num_seqs=seqs,
        max_num_batched_tokens=draw(st.integers(seqs if chunked else max(seqs, max_model_len), 70)),
        max_model_len=max_model_len,
        kv_tokens=(usable + 1) * block,
        block_tokens=block,
        watermark_ratio=draw(st.sampled_from([0.0, 0.1, 0.3])),
        chunked_prefill=chunked,
        long_prefill_token_threshold=draw(st.integers(0, 12)) if thresholds else 0,
        policy=draw(st.sampled_from(SchedulingPolicy)),
        prefix_caching=draw(st.booleans()),
        scheduler_reserve_full_isl=draw(st.booleans()),
        step_times=TIMES,
    )


@dataclass(frozen=True, slots=True)
class Script:
    """What clients do: sequences with when they come, and when some of them leave."""

    arrivals: list[tuple[float, Sequence]]
    departures: dict[int, float]


@st.composite
def scripts(draw: st.DrawFn, max_model_len: int, *, shared: bool) -> Script:
    now, arrivals, departures = 0.0, [], {}
    for key in range(draw(st.integers(1, 14))):
        now += draw(st.floats(0.000_1, 1.5)) if draw(st.booleans()) else 0.000_013
        input_tokens = draw(st.integers(1, max_model_len - 1))
        unit = draw(st.sampled_from([1, 3, 8]))
        # The ids end before the prompt does: what the engine recomputes of a whole hit is then nobody else's.
        known = draw(st.integers(0, (input_tokens - 1) // unit))
        ids = tuple(draw(st.sampled_from([0, 0, 0, 1])) for _ in range(known))
        sequence = Sequence(
            key,
            input_tokens,
            draw(st.none() | st.integers(1, max_model_len)),
            natural_end=draw(st.none() | st.builds(NaturalEnd, st.integers(1, 50), st.just(FinishReason.EOS))),
            blocks=PromptBlocks(ids, unit) if shared else None,
            priority=draw(st.integers(0, 2)),
        )
        arrivals.append((now, sequence))
        if draw(st.integers(0, 4)) == 0:
            departures[key] = now + draw(st.floats(0.001, 2))
    return Script(arrivals, departures)


def calls(script: Script) -> list[tuple[float, Sequence | int]]:
    """All calls in their order: a sequence that comes, or the key of one that leaves."""
    arrivals: list[tuple[float, Sequence | int]] = list(script.arrivals)
    return sorted([*arrivals, *((at, key) for key, at in script.departures.items())], key=lambda call: call[0])


def play(parameters: VllmParameters, script: Script, looks: int = 0) -> list[Result]:
    """Return all results.

    Args:
        parameters: of the replica.
        script: what clients do.
        looks: with 0 the replica is advanced to its changes; else to each step, and so often between two calls.
    """
    replica = VllmScheduler(parameters)
    results: list[Result] = []
    last = 0.0

    def run(until: float) -> None:
        while (at := replica.next_step_at if looks else replica.next_change_at) is not None and at <= until:
            results.extend(replica.advance(at))
            assert replica.check() == ()
        results.extend(replica.advance(until))

    for at, call in calls(script):
        for look in range(1, looks):
            run(last + (at - last) * look / looks)
        run(at)
        last = at
        if isinstance(call, Sequence):
            assert replica.take_permit(call.key)
            assert isinstance(replica.submit(call, at), OutputPlan)
        else:
            replica.leave(call)
    run(1e9)
    assert (replica.held_kv_tokens, replica.queue_size, replica.batch_size, replica.permits_in_use) == (0, 0, 0, 0)
    return results


def differences(parameters: VllmParameters, script: Script) -> None:
    """Compare what the replica tells with what the slow way comes to."""
    slow = NaiveVllm(parameters, script.arrivals, script.departures)
    slow.run()
    results = play(parameters, script)
    jobs = slow.jobs.values()
    firsts = {result.key: result.at for result in results if isinstance(result, FirstToken)}
    ends = {result.key: result for result in results if isinstance(result, Ended)}
    preempted = [(result.key, result.at) for result in results if isinstance(result, Preempted)]
    assert firsts == pytest.approx({job.sequence.key: job.first_at for job in jobs if job.first_at is not None})
    ended = [job for job in jobs if job.ended_at is not None]
    assert {key: end.output_tokens for key, end in ends.items()} == {job.sequence.key: job.produced for job in ended}
    assert {key: end.at for key, end in ends.items()} == pytest.approx(
        {job.sequence.key: job.ended_at for job in ended}
    )
    starts = {key: end.started_at for key, end in ends.items()}
    assert starts == pytest.approx({job.sequence.key: job.started_at for job in ended})
    assert Counter(key for key, _ in preempted) == {
        job.sequence.key: len(job.preempted_at) for job in jobs if job.preempted_at
    }
    slow_preempted = sorted(at for job in jobs for at in job.preempted_at)
    assert sorted(at for _, at in preempted) == pytest.approx(slow_preempted)
    assert sum(result.count for result in results if isinstance(result, StepsEnded)) == slow.steps
    dropped = {result.key for result in results if isinstance(result, Dropped)}
    assert dropped == set(slow.dropped)


@pytest.mark.slow
@settings(max_examples=60)
@given(data=st.data())
def test_every_time_and_count_is_that_of_the_slow_way(data: st.DataObject) -> None:
    parameters = data.draw(replicas(thresholds=True))
    differences(parameters, data.draw(scripts(parameters.max_model_len, shared=False)))


@pytest.mark.slow
@settings(max_examples=60)
@given(data=st.data())
def test_shared_prompts_are_found_and_forgotten_as_the_slow_way_does(data: st.DataObject) -> None:
    parameters = data.draw(replicas(thresholds=False))
    differences(parameters, data.draw(scripts(parameters.max_model_len, shared=True)))


def told(results: list[Result]) -> tuple[list[Result], Counter[tuple[object, object]]]:
    """Return all results but those of steps, and the number and time of the steps of each kind."""
    steps: Counter[tuple[object, object]] = Counter()
    for result in results:
        if isinstance(result, StepsEnded):
            steps[result.kind, "steps"] += result.count
            steps[result.kind, "joined"] += result.joined
    return [result for result in results if not isinstance(result, StepsEnded)], steps


def seconds(results: list[Result]) -> float:
    return sum(result.seconds for result in results if isinstance(result, StepsEnded))


@pytest.mark.slow
@settings(max_examples=100)
@given(data=st.data())
def test_how_often_it_is_looked_at_changes_nothing_to_the_last_bit(data: st.DataObject) -> None:
    parameters = data.draw(replicas(thresholds=True))
    script = data.draw(scripts(parameters.max_model_len, shared=True))
    seldom = play(parameters, script)
    for looks in (1, data.draw(st.integers(2, 60))):
        often = play(parameters, script, looks=looks)
        assert told(often) == told(seldom)
        assert seconds(often) == pytest.approx(seconds(seldom))


class Replica(RuleBasedStateMachine):
    """Counts from outside what went in and what came out, with failures, stalls and clients that leave."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.next_key = 0
        self.validating: list[int] = []
        self.live: dict[int, Sequence] = {}
        self.left: set[int] = set()
        self.tokens: dict[int, int] = {}
        self.starts: dict[int, float] = {}
        self.firsts: Counter[int] = Counter()
        self.endings: Counter[int] = Counter()

    @initialize(parameters=replicas(thresholds=True), limit=st.none() | st.integers(1, 8), tokens=st.integers(1, 200))
    def build(self, parameters: VllmParameters, limit: int | None, tokens: int) -> None:
        self.parameters = replace(parameters, max_num_queued_reqs=limit, max_num_queued_tokens=tokens)
        self.replica = VllmScheduler(self.parameters)

    @rule()
    def ask(self) -> None:
        self.collect(self.replica.advance(self.now))
        key, self.next_key = self.next_key, self.next_key + 1
        present = len(self.validating) + len(self.live) - len(self.left)
        limit = self.parameters.max_num_queued_reqs
        unanswered = sum(s.input_tokens for k, s in self.live.items() if k not in self.left and not self.firsts[k])
        full = (limit is not None and present >= limit) or unanswered >= (self.parameters.max_num_queued_tokens or 0)
        assert self.replica.take_permit(key) is not full
        if not full:
            self.validating.append(key)

    @precondition(lambda self: self.validating)
    @rule(
        input_tokens=st.integers(1, 70),
        output=st.none() | st.integers(1, 60),
        end=st.none() | st.integers(1, 60),
        ids=st.lists(st.integers(0, 1), max_size=12),
        priority=st.integers(-1, 1),
    )
    def submit(self, input_tokens: int, output: int | None, end: int | None, ids: list[int], priority: int) -> None:
        self.collect(self.replica.advance(self.now))
        key = self.validating.pop(0)
        natural = None if end is None else NaturalEnd(end, FinishReason.EOS)
        blocks = PromptBlocks(tuple(ids), 4) if ids else None
        sequence = Sequence(key, input_tokens, output, None, natural, blocks, priority)
        if isinstance(self.replica.submit(sequence, self.now), OutputPlan):
            self.live[key] = sequence

    @precondition(lambda self: self.validating or self.live)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self.collect(self.replica.advance(self.now))
        if not (self.validating or self.live):
            return
        key = data.draw(st.sampled_from([*self.validating, *self.live]))
        self.replica.leave(key)
        if key in self.live:
            self.left.add(key)
        else:
            self.validating.remove(key)

    @rule()
    def fail(self) -> None:
        self.collect(self.replica.advance(self.now))
        self.replica.fail_step("out of memory")

    @rule(seconds=st.floats(0, 2))
    def stall(self, seconds: float) -> None:
        self.collect(self.replica.advance(self.now))
        self.replica.stall(self.now, seconds)

    @rule(seconds=st.floats(0, 3))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.collect(self.replica.advance(self.now))

    def collect(self, results: list[Result]) -> None:
        for result in results:
            match result:
                case FirstToken(key):
                    self.firsts[key] += 1
                    assert key in self.live
                    assert key not in self.left, "a token for a client that left"
                case Ended():
                    self.end(result)
                case Failed(key):
                    assert key not in self.left
                    self.forget(key)
                case Dropped(key):
                    self.left.remove(key)
                    self.forget(key)
                case Preempted(key):
                    assert key in self.live
                case _:
                    pass

    def end(self, ended: Ended) -> None:
        sequence = self.live[ended.key]
        natural = self.parameters.max_model_len if sequence.natural_end is None else sequence.natural_end.after_tokens
        asked = sequence.asked_output_tokens or self.parameters.max_model_len
        assert ended.output_tokens == min(natural, asked, self.parameters.max_model_len - sequence.input_tokens)
        assert self.firsts[ended.key] == 1
        assert ended.queued_at <= ended.started_at < ended.at <= self.now
        self.starts[ended.key] = ended.started_at
        self.forget(ended.key)

    def forget(self, key: int) -> None:
        self.endings[key] += 1
        assert self.endings[key] == 1, "served twice"
        del self.live[key]
        self.tokens.pop(key, None)

    @invariant()
    def nothing_is_broken(self) -> None:
        if not hasattr(self, "replica"):
            return
        assert self.replica.check() == ()
        most = self.parameters.usable_blocks * self.parameters.block_tokens
        assert self.replica.held_kv_tokens <= most
        for key in self.live:
            produced = self.replica.output_tokens(key)
            assert produced >= self.tokens.get(key, 0), "a token was taken back"
            self.tokens[key] = produced
        views = self.replica.sequences()
        assert sum(view.phase is Phase.QUEUED for view in views) == self.replica.queue_size
        assert sorted(view.key for view in views) == sorted([*self.validating, *self.live])

    def teardown(self) -> None:
        """Whatever is left ends in finite time: nothing waits for ever, nothing is lost, all KV comes back."""
        if not hasattr(self, "replica"):
            return
        for _ in range(20_000):
            at = self.replica.next_change_at
            if at is None:
                break
            self.now = max(self.now, at)
            self.collect(self.replica.advance(self.now))
        assert not self.live
        if self.parameters.policy is SchedulingPolicy.FCFS:
            # Keys are submitted in their order, so first come first served means that first starts are in order too.
            starts = [self.starts[key] for key in sorted(self.starts)]
            assert starts == sorted(starts)
        assert self.replica.permits_in_use == len(self.validating)
        assert (self.replica.held_kv_tokens, self.replica.queue_size, self.replica.batch_size) == (0, 0, 0)


Replica.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestReplica = pytest.mark.slow(Replica.TestCase)


@settings(max_examples=100)
@given(data=st.data())
def test_by_priority_nobody_begins_before_a_more_urgent_one_that_waits(data: st.DataObject) -> None:
    """All come at once, so the order of first starts is that of priority, and of arrival among equals."""
    parameters = replace(data.draw(replicas(thresholds=True)), policy=SchedulingPolicy.PRIORITY)
    replica = VllmScheduler(parameters)
    lengths = data.draw(st.lists(st.tuples(st.integers(1, 7), st.integers(1, 40), st.integers(0, 3)), min_size=1))
    for key, (input_tokens, output, priority) in enumerate(lengths):
        assert replica.take_permit(key)
        replica.submit(Sequence(key, input_tokens, output, priority=priority), 0.0)
    starts: dict[int, float] = {}
    while (at := replica.next_change_at) is not None:
        starts |= {result.key: result.started_at for result in replica.advance(at) if isinstance(result, Ended)}
    by_rank = [starts[key] for key in sorted(starts, key=lambda key: (lengths[key][2], key))]
    assert by_rank == sorted(by_rank)
