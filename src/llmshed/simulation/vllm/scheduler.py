"""The simulated vLLM replica itself: calls in, results out, `now` given."""

from llmshed.simulation.limits import LimitProblem, OutputPlan
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.radix import Row, lay_out
from llmshed.simulation.results import Dropped, Ended, Failed, FirstToken, Preempted, Result, StepKind, StepsEnded
from llmshed.simulation.sequences import Phase, Sequence, SequenceView
from llmshed.simulation.stalling import Stalling
from llmshed.simulation.stretch import Stretch
from llmshed.simulation.vllm.batch import Batch
from llmshed.simulation.vllm.blocks import Holding
from llmshed.simulation.vllm.entry import VllmEntry
from llmshed.simulation.vllm.limits import plan_output
from llmshed.simulation.vllm.line import WaitingLine
from llmshed.simulation.vllm.parameters import VllmParameters


class VllmScheduler:
    """One replica of vLLM: its own limits, the waiting line, KV blocks, steps. See `ReplicaModel` for the calls.

    The engine hears of a closed connection between two steps, of waiting and running sequences alike, and before it
    looks at what the step produced. A failed step is the end of vLLM's engine process: running and waiting sequences
    are lost and the cache is empty; here the next engine is there at once, so let a failure be followed by a stall.

    `check` states the invariants: every KV block is held or free; every submitted sequence is in exactly one place;
    permits are held for live sequences only.
    """

    def __init__(self, parameters: VllmParameters) -> None:
        """Start idle and empty."""
        self._parameters = parameters
        self._batch = Batch(parameters)
        self._waiting = WaitingLine(parameters.policy)
        self._live: dict[int, VllmEntry] = {}
        self._permits: set[int] = set()
        self._validating: set[int] = set()
        self._leaving: list[VllmEntry] = []
        self._unanswered_tokens = 0
        self._stretch: Stretch | None = None
        self._steps_told = 0
        self._told_until = 0.0
        self._kind = StepKind.DECODE
        self._joined = 0
        self._wake_at = 0.0
        self._stalling = Stalling()
        self._failure: str | None = None
        self._next_order = 0

    @property
    def queue_size(self) -> int:
        """Return vLLM's `num_requests_waiting`: waiting and preempted, with abandoned ones until the next step."""
        return len(self._waiting)

    @property
    def batch_size(self) -> int:
        """Return vLLM's `num_requests_running`."""
        return len(self._batch)

    @property
    def held_kv_tokens(self) -> int:
        """Return the room of the KV blocks held, a shared one once; vLLM's `kv_cache_usage_perc` as tokens."""
        return self._batch.held_blocks * self._parameters.block_tokens

    @property
    def permits_in_use(self) -> int:
        """Return the sequences that count against `max_num_queued_reqs`: all whose client is still there."""
        return len(self._permits)

    @property
    def next_step_at(self) -> float | None:
        """Return when the step in progress ends; None while idle, or stalled without an end."""
        if self._stretch is not None:
            return self._stalling.earliest(self._stretch.ended_at(self._steps_told + 1))
        return self._stalling.earliest(self._wake_at) if self._waiting else None

    @property
    def next_change_at(self) -> float | None:
        """Return when more than one further token for each decoding sequence happens; None as above."""
        if self._stretch is not None:
            return self._stalling.earliest(self._stretch.ends_at)
        return self.next_step_at

    def take_permit(self, key: int) -> bool:
        """Take a permit for a sequence about to be validated; False when one of vLLM's own limits is reached (503).

        The limit on tokens looks at what is there already, so one prompt of any length passes it.
        """
        reqs, tokens = self._parameters.max_num_queued_reqs, self._parameters.max_num_queued_tokens
        if reqs is not None and len(self._permits) >= reqs:
            return False
        if tokens is not None and self._unanswered_tokens >= tokens:
            return False
        self._permits.add(key)
        self._validating.add(key)
        return True

    def submit(self, sequence: Sequence, now: float) -> OutputPlan | LimitProblem:
        """Queue a counted sequence that holds a permit; a problem leaves nothing behind, the permit included."""
        plan = plan_output(self._parameters.max_model_len, sequence)
        if not isinstance(plan, OutputPlan):
            self._validating.remove(sequence.key)
            self._permits.remove(sequence.key)
            return plan
        holding = Holding(self._prompt(sequence, plan.input_tokens))
        self._validating.remove(sequence.key)
        self._next_order += 1
        entry = VllmEntry(sequence, plan.input_tokens, plan.ceiling_tokens, self._next_order, now, holding)
        if self._stretch is None and not self._waiting:
            self._wake_at = now
        self._live[entry.key] = entry
        self._unanswered_tokens += entry.input_tokens
        self._waiting.join(entry)
        if self._waiting.head is entry:
            # It may join at the next step. Behind a head that cannot join it could not either.
            self._cut()
        return plan

    def leave(self, key: int) -> None:
        """Note that the client of a sequence is gone: its permit is free now, its place and KV at the next step."""
        self._permits.discard(key)
        self._validating.discard(key)
        entry = self._live.get(key)
        if entry is None or entry.abandoned:
            return
        entry.abandoned = True
        self._leaving.append(entry)
        if not self._batch.output_tokens(entry):
            self._unanswered_tokens -= entry.input_tokens
        self._cut()

    def fail_step(self, message: str) -> None:
        """Let the step that runs, or else the next one, fail: all sequences are lost, the waiting ones too."""
        self._failure = message
        self._cut()

    def stall(self, now: float, seconds: float) -> None:
        """Let no step end, and none begin, for `seconds` from `now`; infinity until `resume`."""
        self._stalling.begin(now, seconds)
        self._cut()

    def resume(self, now: float) -> None:
        """End a stall."""
        self._stalling.end(now)

    def advance(self, now: float) -> list[Result]:
        """End and begin every step that is due up to `now`, and return what came of them in order."""
        results: list[Result] = []
        while (at := self.next_change_at) is not None and at <= now:
            if self._stretch is not None:
                self._end_stretch(self._stretch, at, results)
            self._drop_leavers(results)
            self._begin_stretch(at, results)
        if self._stretch is not None and self._stalling.is_over(now):
            self._pass_steps(self._stretch, self._stretch.steps_by(now), results)
        return results

    def output_tokens(self, key: int) -> int:
        """Return the tokens that a live sequence has produced; 0 before its first."""
        entry = self._live.get(key)
        return 0 if entry is None else self._batch.output_tokens(entry)

    def cached_tokens(self, prompt: PromptBlocks | None, input_tokens: int) -> int:
        """Return the leading tokens of a prompt in full blocks that are computed already, all but the last at most."""
        if prompt is None:
            return 0
        row = lay_out(prompt, input_tokens, self._parameters.block_tokens)
        return (
            self._batch.known_blocks(row, (input_tokens - 1) // self._parameters.block_tokens) * row.scale.block_tokens
        )

    def sequences(self) -> list[SequenceView]:
        """Return every live sequence: those in validation, then running, then waiting; shared KV counts for each."""
        validating = [SequenceView(key, Phase.VALIDATING, 0, 0, None, 0, abandoned=False) for key in self._validating]
        return validating + [
            SequenceView(
                entry.key,
                entry.phase,
                entry.input_tokens,
                self._batch.output_tokens(entry),
                entry.ceiling_tokens,
                self._batch.blocks_of(entry) * self._parameters.block_tokens,
                entry.abandoned,
            )
            for entry in (*self._batch, *self._waiting)
        ]

    def check(self) -> tuple[str, ...]:
        """Return the broken invariants, one sentence each; empty when all hold."""
        broken = list(self._batch.check())
        placed = [*self._batch, *self._waiting]
        if sorted(entry.key for entry in placed) != sorted(self._live):
            broken.append(f"{len(self._live)} sequences are live, {len(placed)} run or wait")
        present = {entry.key for entry in placed if not entry.abandoned} | self._validating
        if present != self._permits:
            broken.append(f"permits {sorted(self._permits)} are held for sequences {sorted(present)}")
        unanswered = sum(e.input_tokens for e in placed if not (e.abandoned or self._batch.output_tokens(e)))
        if unanswered != self._unanswered_tokens:
            broken.append(f"{self._unanswered_tokens} prompt tokens are counted unanswered, {unanswered} are")
        if any(self._batch.blocks_of(entry) for entry in self._waiting):
            broken.append("a waiting sequence holds KV")
        if self._batch and self._stretch is None:
            broken.append("sequences run, yet no step does")
        return tuple(broken)

    def _cut(self) -> None:
        """Let no step follow the one in progress without a look at what has changed."""
        if self._stretch is not None:
            self._stretch = self._stretch.cut(self._steps_told + 1)

    def _begin_stretch(self, at: float, results: list[Result]) -> None:
        self._stretch = None
        plan = self._batch.plan(self._waiting, at)
        results.extend(Preempted(entry.key, at) for entry in plan.preempted)
        if not self._batch:
            return
        times = self._parameters.step_times
        growth = times.growth_seconds(plan.work.decoding_sequences)
        self._stretch = Stretch(at, times.seconds(plan.work), growth, plan.steps)
        self._kind = StepKind.PREFILL if plan.work.prefill_tokens else StepKind.DECODE
        self._joined = plan.joined
        self._steps_told, self._told_until = 0, at
        if self._failure is not None:
            self._cut()

    def _pass_steps(self, stretch: Stretch, ended: int, results: list[Result]) -> None:
        """Let the stretch have ended so many steps, the last of it excepted."""
        count = ended - self._steps_told
        if count > 0:
            self._batch.pass_steps(count, more=True)
            self._tell_steps(stretch.ended_at(ended), count, results, failed=False)
            self._steps_told = ended

    def _tell_steps(self, at: float, count: int, results: list[Result], *, failed: bool) -> None:
        results.append(StepsEnded(self._kind, count, at - self._told_until, self._joined, None, failed))
        self._joined, self._told_until = 0, at

    def _end_stretch(self, stretch: Stretch, at: float, results: list[Result]) -> None:
        count = stretch.steps - self._steps_told
        failure, self._failure = self._failure, None
        self._tell_steps(at, count, results, failed=failure is not None)
        if failure is not None:
            self._lose_all(failure, results)
            return
        self._batch.pass_steps(count, more=False)
        produced = self._batch.settle()
        self._drop_leavers(results)
        for entry in produced:
            if entry.output_tokens == 1 and not entry.abandoned:
                self._unanswered_tokens -= entry.input_tokens
                results.append(FirstToken(entry.key, at))
        for entry in self._batch.take_ended():
            results.append(_ended(entry, at))
            self._forget(entry)

    def _drop_leavers(self, results: list[Result]) -> None:
        if not self._leaving:
            return
        leaving, self._leaving = self._leaving, []
        self._waiting.drop_abandoned()
        for entry in leaving:
            queued = entry.phase is Phase.QUEUED
            if not queued:
                self._batch.remove(entry)
            results.append(Dropped(entry.key, while_queued=queued))
            self._forget(entry)

    def _lose_all(self, message: str, results: list[Result]) -> None:
        results.extend(
            Dropped(entry.key, while_queued=entry.phase is Phase.QUEUED)
            if entry.abandoned
            else Failed(entry.key, message)
            for entry in (*self._batch, *self._waiting)
        )
        for entry in list(self._live.values()):
            self._forget(entry)
        self._leaving.clear()
        self._unanswered_tokens = 0
        self._waiting = WaitingLine(self._parameters.policy)
        self._batch = Batch(self._parameters)

    def _prompt(self, sequence: Sequence, input_tokens: int) -> Row | None:
        """Return the ids that others may find its blocks by; those of a cut prompt are not known."""
        cut = input_tokens < sequence.input_tokens
        if sequence.blocks is None or cut:
            return None
        return lay_out(sequence.blocks, input_tokens, self._parameters.block_tokens)

    def _forget(self, entry: VllmEntry) -> None:
        self._permits.discard(entry.key)
        del self._live[entry.key]


def _ended(entry: VllmEntry, at: float) -> Ended:
    started_at = at if entry.started_at is None else entry.started_at
    return Ended(entry.key, entry.finish_reason, entry.output_tokens, entry.queued_at, started_at, at)
