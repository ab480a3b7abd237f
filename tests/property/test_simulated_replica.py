"""The simulated replica under any order of arrivals, departures, failures and stalls."""

from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from llmshed.simulation.cost import StepTimes
from llmshed.simulation.limits import OutputPlan
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import ChunkQueued, Dropped, Ended, Failed, FirstToken, Preempted, Result, StepsEnded
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence
from llmshed.simulation.versions import Chunking

MAX_STEPS = 20_000


class Replica(RuleBasedStateMachine):
    """Counts from outside what went in and what came out."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.next_key = 0
        self.validating: list[int] = []
        self.live: dict[int, Sequence] = {}
        self.left: set[int] = set()
        self.starts: dict[int, float] = {}
        self.stalled = False
        self.tokens: Counter[int] = Counter()
        self.endings: Counter[int] = Counter()

    @initialize(
        version=st.sampled_from(["1.4.5", "2.4.0", "3.0.1", "3.3.5"]),
        permits=st.integers(1, 12),
        kv=st.integers(2300, 4600),
        prefill=st.integers(1, 3000),
        block=st.sampled_from([1, 16, 256]),
        caching=st.booleans(),
        speculate=st.sampled_from([0, 0, 2]),
        most=st.none() | st.integers(1, 6),
    )
    def build(
        self,
        version: str,
        permits: int,
        kv: int,
        prefill: int,
        block: int,
        *,
        caching: bool,
        speculate: int,
        most: int | None,
    ) -> None:
        chunked = version.startswith("3") and not speculate
        self.parameters = ReplicaParameters(
            version=version,
            max_concurrent_requests=permits,
            max_input_tokens=1200,
            max_total_tokens=2300,
            max_batch_prefill_tokens=prefill if chunked else max(prefill, 1200),
            max_batch_size=most,
            # Room for one maximal request with its guesses, beside the block that the engine keeps.
            kv_tokens=kv + 2 * block + speculate,
            block_tokens=block,
            prefix_caching=caching and version.startswith("3"),
            speculate=speculate,
            accepted_tokens=0.6 * speculate,
            step_times=StepTimes(0.02, seconds_per_prefill_token=0.0001, seconds_per_decoding_sequence=0.0001),
        )
        self.replica = Scheduler(self.parameters)

    @rule()
    def ask(self) -> None:
        key, self.next_key = self.next_key, self.next_key + 1
        free = len(self.validating) + len(self.live) - len(self.left) < self.parameters.max_concurrent_requests
        assert self.replica.take_permit(key) is free
        if free:
            self.validating.append(key)

    @precondition(lambda self: self.validating)
    @rule(
        input_tokens=st.integers(0, 2400),
        output=st.none() | st.integers(1, 3000),
        truncate=st.none() | st.integers(1, 1200),
        end=st.none() | st.integers(1, 3000),
        prefix=st.none() | st.integers(0, 3),
    )
    def submit(
        self, input_tokens: int, output: int | None, truncate: int | None, end: int | None, prefix: int | None
    ) -> None:
        self.collect(self.replica.advance(self.now))
        key = self.validating.pop(0)
        natural = None if end is None else NaturalEnd(end, FinishReason.EOS)
        # Prompts of one prefix are equal up to their last quarter.
        ids = [prefix or 0] * (input_tokens * 3 // 4) + [-key] * (input_tokens - input_tokens * 3 // 4)
        blocks = None if prefix is None else PromptBlocks(tuple(ids), 1)
        sequence = Sequence(key, input_tokens, output, truncate, natural, blocks)
        if isinstance(self.replica.submit(sequence, self.now), OutputPlan):
            self.live[key] = sequence

    @rule(many=st.integers(2, 6), input_tokens=st.integers(1, 1200), output=st.none() | st.integers(1, 1100))
    def burst(self, many: int, input_tokens: int, output: int | None) -> None:
        for _ in range(many):
            self.ask()
        while self.validating:
            self.submit(input_tokens=input_tokens, output=output, truncate=None, end=None, prefix=1)

    @precondition(lambda self: self.validating or self.live)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from([*self.validating, *self.live]))
        self.replica.leave(key)
        if key in self.live:
            self.left.add(key)
        else:
            self.validating.remove(key)

    @rule()
    def fail(self) -> None:
        self.replica.fail_step("out of memory")

    @rule(seconds=st.floats(0, 2))
    def stall(self, seconds: float) -> None:
        self.stalled = True
        self.replica.stall(self.now, seconds)

    @rule(seconds=st.floats(0, 5))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.collect(self.replica.advance(self.now))

    def collect(self, results: list[Result]) -> None:
        for result in results:
            match result:
                case FirstToken(key):
                    assert key not in self.left, "a token for a client that left"
                    assert self.tokens[key] == 0, "a first token told twice"
                    self.tokens[key] = 1
                case Ended(key):
                    self.end(key)
                    self.check_output(result)
                case Failed(key):
                    assert key not in self.left
                    self.end(key)
                case Dropped(key):
                    assert key in self.left
                    self.left.remove(key)
                    self.end(key)
                case ChunkQueued(key):
                    assert key in self.live
                case StepsEnded():
                    self.check_step(result)
                case Preempted():
                    pytest.fail("TGI preempts nothing")

    def check_step(self, step: StepsEnded) -> None:
        """A step works through its prefill budget at most, and through one token of whatever else runs."""
        rounding = self.parameters.block_tokens
        positions = (len(self.endings) + len(self.live)) * (1 + self.parameters.speculate)
        most_tokens = self.parameters.max_batch_prefill_tokens + rounding + positions
        assert step.seconds > 0
        assert self.stalled or step.seconds <= step.count * (0.02 + 0.0001 * most_tokens + 1e-6)

    def end(self, key: int) -> None:
        self.endings[key] += 1
        assert self.endings[key] == 1, "served twice"
        self.ended = self.live.pop(key)

    def check_output(self, ended: Ended) -> None:
        sequence, produced = self.ended, ended.output_tokens
        assert produced >= self.tokens[ended.key] >= 1
        if ended.reason is FinishReason.EOS:
            assert sequence.natural_end is not None
            assert produced == sequence.natural_end.after_tokens
        asked = sequence.asked_output_tokens
        if asked is not None:
            chunked = self.parameters.rules.chunking is Chunking.ALWAYS
            assert produced <= (-(-asked // 1024) * 1024 if chunked and asked > 1024 else asked)
        assert ended.queued_at <= ended.started_at < ended.at <= self.now
        self.starts[ended.key] = ended.started_at

    @invariant()
    def tokens_only_grow(self) -> None:
        for key in self.live:
            produced = self.replica.output_tokens(key)
            assert produced >= self.tokens[key]
            self.tokens[key] = produced

    @invariant()
    def nothing_is_broken(self) -> None:
        if hasattr(self, "replica"):
            assert self.replica.check() == ()
            # Prefixes that are shared count once for each that holds them; `check` counts every block once.
            most = self.parameters.kv_tokens * (self.replica.batch_size if self.parameters.prefix_caching else 1)
            assert self.replica.held_kv_tokens <= most

    def teardown(self) -> None:
        """Whatever is left ends in finite time: nothing waits for ever and nothing is lost."""
        if not hasattr(self, "replica"):
            return
        for _ in range(MAX_STEPS):
            at = self.replica.next_change_at
            if at is None:
                break
            self.now = max(self.now, at)
            self.collect(self.replica.advance(self.now))
        assert not self.live
        # Keys are submitted in their order, so first come first served means that starts are in that order too.
        starts = [self.starts[key] for key in sorted(self.starts)]
        assert starts == sorted(starts)
        assert self.replica.permits_in_use == len(self.validating)
        assert (self.replica.held_kv_tokens, self.replica.queue_size, self.replica.batch_size) == (0, 0, 0)


Replica.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestReplica = pytest.mark.slow(Replica.TestCase)
