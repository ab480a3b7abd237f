"""The simulated replica itself: calls in, results out, `now` given."""

from collections import deque
from math import floor, inf

from llmshed.simulation.batching import take_from_front
from llmshed.simulation.kv import KvBlocks
from llmshed.simulation.limits import LimitProblem, OutputPlan, plan_output
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import (
    ChunkQueued,
    Dropped,
    Ended,
    Failed,
    JoinReason,
    Result,
    StepEnded,
    StepKind,
    TokenProduced,
)
from llmshed.simulation.sequences import Entry, FinishReason, Phase, Sequence, SequenceView
from llmshed.simulation.step import (
    RunningStep,
    ending,
    next_chunk,
    step_seconds,
    tokens_of_next_step,
    work_through_prompts,
)


class Scheduler:
    """One replica of TGI: permits, strict FIFO, KV blocks, steps.

    Life of a sequence: `take_permit`, then `submit` (or `leave`), then results of `advance` until `Ended`, `Failed`
    or, after `leave`, `Dropped`. `advance(now)` must be called before `submit(..., now)` when a step is due; a late
    call catches up, since an engine does not wait for whoever reads its answers.

    `check` states the invariants: KV within bounds and conserved; permits within bounds; every submitted sequence in
    exactly one place; the queue in order of arrival.
    """

    def __init__(self, parameters: ReplicaParameters) -> None:
        """Start idle and empty."""
        self._parameters = parameters
        self._kv = KvBlocks(parameters.usable_blocks, parameters.block_tokens)
        self._permits: set[int] = set()
        self._validating: set[int] = set()
        self._queue: deque[Entry] = deque()
        self._running: list[Entry] = []
        self._step: RunningStep | None = None
        self._may_join = True
        self._steps_since_join = 1
        self._wake_at = 0.0
        self._stalled_until = -inf
        self._failure: str | None = None
        self._next_order = 0
        self._submitted_total = 0
        self._gone_total = 0

    @property
    def queue_size(self) -> int:
        """Return TGI's `tgi_queue_size`: waiting entries, with abandoned ones that nobody has reached yet."""
        return len(self._queue)

    @property
    def batch_size(self) -> int:
        """Return TGI's `tgi_batch_current_size`: running sequences."""
        return len(self._running)

    @property
    def held_kv_tokens(self) -> int:
        """Return TGI's `tgi_batch_current_max_tokens`: room of the KV blocks that running sequences hold."""
        return self._kv.held_tokens

    @property
    def permits_in_use(self) -> int:
        """Return the permits taken: sequences in validation, waiting and running, without abandoned ones."""
        return len(self._permits)

    @property
    def next_step_at(self) -> float | None:
        """Return when `advance` has something to do; None while idle, or stalled without an end."""
        if self._step is not None:
            due = self._step.ends_at
        elif self._queue:
            due = self._wake_at
        else:
            return None
        at = max(due, self._stalled_until)
        return None if at == inf else at

    def take_permit(self, key: int) -> bool:
        """Take a permit for a sequence about to be validated; False when all are taken (TGI's 429)."""
        if len(self._permits) >= self._parameters.max_concurrent_requests:
            return False
        self._permits.add(key)
        self._validating.add(key)
        return True

    def submit(self, sequence: Sequence, now: float) -> OutputPlan | LimitProblem:
        """Queue a counted sequence that holds a permit; a problem leaves nothing behind, the permit included."""
        self._validating.remove(sequence.key)
        plan = plan_output(
            self._parameters, sequence.input_tokens, sequence.asked_output_tokens, sequence.truncate_tokens
        )
        if not isinstance(plan, OutputPlan):
            self._permits.remove(sequence.key)
            return plan
        self._submitted_total += 1
        # A prompt of no tokens still takes one position of a forward pass.
        entry = Entry(sequence, max(plan.input_tokens, 1), plan.chunk_tokens, plan.ceiling_tokens, 0, now)
        self._join_tail(entry, now)
        return plan

    def leave(self, key: int) -> None:
        """Note that the client of a sequence is gone: its permit is free now, its KV when the engine notices.

        A running one is noticed at its next token, a waiting one when it reaches the front. A key that is not live is
        ignored, so that an end and a disconnection may cross.
        """
        self._permits.discard(key)
        self._validating.discard(key)
        for entry in (*self._queue, *self._running):
            if entry.key == key:
                entry.abandoned = True

    def fail_step(self, message: str) -> None:
        """Let the step that runs, or else the next one, fail: all that take part in it are lost."""
        self._failure = message

    def stall(self, now: float, seconds: float) -> None:
        """Let no step end, and none begin, for `seconds` from `now`; infinity until `resume`."""
        self._stalled_until = max(self._stalled_until, now + seconds)

    def resume(self, now: float) -> None:
        """End a stall."""
        self._stalled_until = min(self._stalled_until, now)

    def advance(self, now: float) -> list[Result]:
        """End and begin every step that is due up to `now`, and return what came of them in order."""
        results: list[Result] = []
        while (at := self.next_step_at) is not None and at <= now:
            if self._step is not None:
                self._end_step(self._step, at, results)
            self._begin_step(at, results)
        return results

    def sequences(self) -> list[SequenceView]:
        """Return every live sequence: those in validation, then running, then waiting."""
        validating = [SequenceView(key, Phase.VALIDATING, 0, 0, None, 0, abandoned=False) for key in self._validating]
        return validating + [
            SequenceView(
                entry.key,
                entry.phase,
                entry.input_tokens,
                entry.generated_tokens,
                entry.ceiling_tokens,
                self._kv.held_by(entry.key),
                entry.abandoned,
            )
            for entry in (*self._running, *self._queue)
        ]

    def check(self) -> tuple[str, ...]:
        """Return the broken invariants, one sentence each; empty when all hold."""
        broken = list(self._kv.check())
        keys = [entry.key for entry in (*self._queue, *self._running)]
        if len(set(keys)) != len(keys):
            broken.append("a sequence is in two places")
        if self._submitted_total - self._gone_total != len(keys):
            broken.append(f"{self._submitted_total - self._gone_total} sequences should be live, {len(keys)} are")
        if len(self._permits) > self._parameters.max_concurrent_requests:
            broken.append(f"{len(self._permits)} permits are taken")
        live = {entry.key for entry in (*self._queue, *self._running) if not entry.abandoned} | self._validating
        if live != self._permits:
            broken.append(f"permits {sorted(self._permits)} are held for live sequences {sorted(live)}")
        orders = [entry.order for entry in self._queue]
        if orders != sorted(orders):
            broken.append("the queue is not in order of arrival")
        if sum(entry.blocks for entry in self._running) != self._kv.held_blocks:
            broken.append("KV is held by something that does not run")
        if self._running and self._step is None:
            broken.append("sequences run, yet no step does")
        return tuple(broken)

    def _join_tail(self, entry: Entry, now: float) -> None:
        entry.order = self._next_order
        self._next_order += 1
        if not self._queue and self._step is None:
            self._wake_at = now
        self._queue.append(entry)

    def _begin_step(self, at: float, results: list[Result]) -> None:
        running_before = len(self._running)
        joined, reason = self._join(at, results)
        if not self._running:
            self._step = None
            return
        kind = StepKind.PREFILL if joined else StepKind.DECODE
        # Without chunked prefill the running sequences pause while those that join are prefilled.
        paused = bool(joined) and not self._parameters.rules.chunked_prefill
        entries = tuple(self._running[running_before:] if paused else self._running)
        # After a join the engine decodes once before it looks at the queue again; a batch from idle looks at once.
        self._may_join = not joined or not running_before
        if joined or not running_before:
            self._steps_since_join = 1
        else:
            self._steps_since_join += 1
        ends_at = at + step_seconds(self._parameters, entries)
        self._step = RunningStep(kind, entries, at, ends_at, joined, reason)

    def _join(self, at: float, results: list[Result]) -> tuple[int, JoinReason | None]:
        if not self._may_join and self._running:
            return 0, None
        chunked = self._parameters.rules.chunked_prefill
        budget, least = self._parameters.max_batch_prefill_tokens, 0
        reason = JoinReason.CHUNKING
        if chunked:
            budget -= tokens_of_next_step(self._running)
        elif self._steps_since_join < self._parameters.max_waiting_steps:
            least = floor(len(self._running) * self._parameters.rules.waiting_served_ratio)
            reason = JoinReason.BACKPRESSURE
        else:
            reason = JoinReason.WAIT_EXCEEDED
        joiners = take_from_front(self._queue, self._kv, max(budget, 0), least, chunked=chunked)
        results.extend(joiners.dropped)
        self._gone_total += len(joiners.dropped)
        for entry in joiners.entries:
            entry.phase = Phase.PREFILL
            entry.started_at = at if entry.started_at is None else entry.started_at
        was_running = bool(self._running)
        self._running.extend(joiners.entries)
        return len(joiners.entries), reason if was_running and joiners.entries else None

    def _end_step(self, step: RunningStep, at: float, results: list[Result]) -> None:
        failure, self._failure = self._failure, None
        results.append(StepEnded(step.kind, at - step.began_at, step.joined, step.join_reason, failure is not None))
        if failure is not None:
            for entry in step.entries:
                results.append(
                    Dropped(entry.key, while_queued=False) if entry.abandoned else Failed(entry.key, failure)
                )
                self._forget(entry)
            return
        work_through_prompts(step.entries, self._parameters.max_batch_prefill_tokens)
        for entry in step.entries:
            if not entry.prefilling:
                self._produce(entry, at, results)

    def _produce(self, entry: Entry, at: float, results: list[Result]) -> None:
        if entry.abandoned:
            results.append(Dropped(entry.key, while_queued=False))
            self._forget(entry)
            return
        entry.phase = Phase.DECODE
        entry.generated_tokens += 1
        entry.chunk_generated_tokens += 1
        results.append(TokenProduced(entry.key, entry.generated_tokens, at))
        reason = ending(entry)
        if reason is None:
            return
        plan = next_chunk(self._parameters, entry) if reason is FinishReason.LENGTH else None
        if plan is None:
            results.append(self._ended(entry, reason, at))
            self._forget(entry)
        else:
            results.append(ChunkQueued(entry.key, plan.input_tokens, plan.chunk_tokens))
            self._queue_again(entry, plan, at)

    def _ended(self, entry: Entry, reason: FinishReason, at: float) -> Ended:
        started_at = at if entry.started_at is None else entry.started_at
        return Ended(entry.key, reason, entry.generated_tokens, entry.queued_at, started_at, at)

    def _queue_again(self, entry: Entry, plan: OutputPlan, at: float) -> None:
        self._stop_running(entry)
        entry.input_tokens = max(plan.input_tokens, 1)
        entry.chunk_tokens = plan.chunk_tokens
        entry.prefilled_tokens = entry.next_prefill_tokens = entry.chunk_generated_tokens = 0
        entry.phase = Phase.QUEUED
        self._join_tail(entry, at)

    def _stop_running(self, entry: Entry) -> None:
        self._running.remove(entry)
        self._kv.free(entry.key)
        entry.blocks = 0

    def _forget(self, entry: Entry) -> None:
        self._stop_running(entry)
        self._permits.discard(entry.key)
        self._gone_total += 1
