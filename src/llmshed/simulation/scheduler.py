"""The simulated replica itself: calls in, results out, `now` given."""

from collections import deque

from llmshed.simulation.batch import RunningBatch
from llmshed.simulation.batching import take_from_front
from llmshed.simulation.cached_kv import CachedKv
from llmshed.simulation.continuing import prompt_of_chunk
from llmshed.simulation.cost import StepWork
from llmshed.simulation.kv import Kv, KvBlocks
from llmshed.simulation.limits import LimitProblem, OutputPlan, plan_output
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import (
    ChunkQueued,
    Dropped,
    Ended,
    Failed,
    FirstToken,
    JoinReason,
    Result,
    StepKind,
    StepsEnded,
)
from llmshed.simulation.room import room_beside, room_from_idle
from llmshed.simulation.sequences import Entry, FinishReason, Phase, Sequence, SequenceView
from llmshed.simulation.stalling import Stalling
from llmshed.simulation.step import RunningStep, finish_reason, next_chunk, with_prompts, work_through_prompts
from llmshed.simulation.stretch import Stretch


class Scheduler:
    """One replica of TGI: permits, strict FIFO, KV blocks, steps. It is a `ReplicaModel`, where its life is told.

    A stretch of decode steps is one step here (`RunningStep`), which ends where the first sequence ends its chunk. A
    call that could change what happens before that cuts it to the step in progress; so calls have to follow an
    `advance` to their own time.

    `check` states the invariants: KV within bounds and conserved; permits within bounds; every submitted sequence in
    exactly one place; the queue in order of arrival.
    """

    def __init__(self, parameters: ReplicaParameters) -> None:
        """Start idle and empty."""
        self._parameters = parameters
        cache = CachedKv if parameters.prefix_caching else KvBlocks
        self._kv: Kv = cache(parameters.usable_blocks, parameters.block_tokens)
        self._permits: set[int] = set()
        self._validating: set[int] = set()
        self._entries: dict[int, Entry] = {}
        self._queue: deque[Entry] = deque()
        self._batch = RunningBatch(parameters.pace, 1 + parameters.speculate)
        self._step: RunningStep | None = None
        self._steps_told = 0
        self._blocked = False
        self._unsettled = False
        self._may_join = True
        self._steps_since_join = 1
        self._wake_at: float | None = None
        self._stalling = Stalling()
        self._failure: str | None = None
        self._next_order = 0

    @property
    def queue_size(self) -> int:
        """Return TGI's `tgi_queue_size`: waiting entries, with abandoned ones that nobody has reached yet."""
        return len(self._queue)

    @property
    def batch_size(self) -> int:
        """Return TGI's `tgi_batch_current_size`: running sequences."""
        return len(self._batch)

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
        """Return when the step in progress ends, or a batch begins; None while idle, or stalled without an end."""
        if self._step is None:
            return self._stalling.earliest(self._wake_at)
        return self._stalling.earliest(self._step.stretch.ended_at(self._steps_told + 1))

    @property
    def next_change_at(self) -> float | None:
        """Return when something other than one more token for each decoding sequence happens; None as above."""
        return self._stalling.earliest(self._wake_at if self._step is None else self._step.stretch.ends_at)

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
        # A prompt of no tokens still takes one position of a forward pass.
        entry = Entry(sequence, max(plan.input_tokens, 1), plan.chunk_tokens, plan.ceiling_tokens, 0, now)
        self._entries[sequence.key] = entry
        self._join_tail(entry, now)
        # Behind a head that does not fit it changes nothing before something ends.
        if not self._blocked:
            self._cut_stretch()
        return plan

    def leave(self, key: int) -> None:
        """Note that the client of a sequence is gone: its permit is free now, its KV when the engine notices.

        A running one is noticed at its next token, a waiting one when it reaches the front. A key that is not live is
        ignored, so that an end and a disconnection may cross.
        """
        self._permits.discard(key)
        self._validating.discard(key)
        entry = self._entries.get(key)
        if entry is None or entry.abandoned:
            return
        entry.abandoned = True
        if entry.phase is not Phase.QUEUED:
            self._batch.note_left(entry)
        # Behind a head that does not fit nobody looks.
        if entry.phase is not Phase.QUEUED or not self._blocked or self._queue[0] is entry:
            self._cut_stretch()

    def fail_step(self, message: str) -> None:
        """Let the step that runs, or else the next one, fail: all that take part in it are lost."""
        self._failure = message
        self._cut_stretch()

    def stall(self, now: float, seconds: float) -> None:
        """Let no step end, and none begin, for `seconds` from `now`; infinity until `resume`."""
        self._stalling.begin(now, seconds)
        self._cut_stretch()

    def resume(self, now: float) -> None:
        """End a stall."""
        self._stalling.end(now)

    def advance(self, now: float) -> list[Result]:
        """End and begin every step that is due up to `now`, and return what came of them in order."""
        results: list[Result] = []
        while (at := self.next_change_at) is not None and at <= now:
            if self._step is not None:
                self._end_step(self._step, at, results)
            self._begin_step(at, results)
        if self._step is not None:
            self._pass_steps(self._step, now, results)
        return results

    def output_tokens(self, key: int) -> int:
        """Return the tokens that a live sequence has produced, over all its chunks; 0 before its first."""
        entry = self._entries.get(key)
        return 0 if entry is None else self._produced(entry)

    def cached_tokens(self, prompt: PromptBlocks | None, input_tokens: int) -> int:
        """Return the leading tokens of a prompt that the prefix cache has, all but the last at most.

        A prompt gets into the cache when it ends, so that of one who waits more may be there when its turn comes.
        """
        return min(self._kv.cached_tokens(prompt, input_tokens), input_tokens - 1)

    def sequences(self) -> list[SequenceView]:
        """Return every live sequence: those in validation, then running, then waiting."""
        validating = [SequenceView(key, Phase.VALIDATING, 0, 0, None, 0, abandoned=False) for key in self._validating]
        return validating + [
            SequenceView(
                entry.key,
                entry.phase,
                entry.input_tokens,
                self._produced(entry),
                entry.ceiling_tokens,
                self._kv.held_by(entry.key),
                entry.abandoned,
            )
            for entry in (*self._batch.members, *self._queue)
        ]

    def check(self) -> tuple[str, ...]:
        """Return the broken invariants, one sentence each; empty when all hold."""
        broken = list(self._kv.check())
        placed = [entry.key for entry in (*self._queue, *self._batch.members)]
        if sorted(placed) != sorted(self._entries):
            broken.append(f"sequences {sorted(self._entries)} are live, {sorted(placed)} wait or run")
        if len(self._permits) > self._parameters.max_concurrent_requests:
            broken.append(f"{len(self._permits)} permits are taken")
        live = {entry.key for entry in self._entries.values() if not entry.abandoned} | self._validating
        if live != self._permits:
            broken.append(f"permits {sorted(self._permits)} are held for live sequences {sorted(live)}")
        orders = [entry.order for entry in (*self._batch.members, *self._queue)]
        if orders != sorted(orders):
            broken.append("sequences do not run and wait in order of arrival")
        if sum(entry.blocks for entry in self._batch.members) != self._kv.held_blocks:
            broken.append("KV is held by something that does not run")
        if len(self._batch) and self._step is None:
            broken.append("sequences run, yet no step does")
        return tuple(broken)

    def _join_tail(self, entry: Entry, now: float) -> None:
        entry.order = self._next_order
        self._next_order += 1
        if self._parameters.prefix_caching:
            entry.prompt = prompt_of_chunk(entry.sequence, entry.earlier_tokens)
        if self._step is None and self._wake_at is None:
            self._wake_at = now
        self._queue.append(entry)

    def _cut_stretch(self) -> None:
        """Let a stretch of decodes end with the step in progress: what comes after it may be something else."""
        if self._step is not None and self._step.stretch.steps > self._steps_told + 1:
            self._step = self._step.cut(self._steps_told + 1)

    def _begin_step(self, at: float, results: list[Result]) -> None:
        running_before = len(self._batch)
        looks = self._may_join or not running_before
        joined, reason = self._join(at, results) if looks else ((), None)
        self._wake_at, self._steps_told = None, 0
        if not len(self._batch):
            # What waits in front of an idle engine does not fit at all: it is looked at again when more comes.
            self._step = None
            return
        # After a join the engine decodes once before it looks at the queue again; a batch from idle looks at once.
        self._may_join = not joined or not running_before
        if joined:
            self._steps_since_join = 1
        # Without chunked prefill the running sequences pause while those that join are prefilled.
        decodes = not joined or self._parameters.prefills_in_pieces
        kind = StepKind.PREFILL if joined else StepKind.DECODE
        work = with_prompts(self._batch.decode_work() if decodes else StepWork(), self._batch.prefilling)
        times = self._parameters.step_times
        growth = times.growth_seconds(self._batch.decoding) * (1 + self._parameters.accepted_tokens)
        stretch = Stretch(at, times.seconds(work), growth, self._steps_without_change(looked=looks))
        self._step = RunningStep(kind, stretch, joined, reason, decodes)

    def _steps_without_change(self, *, looked: bool) -> int:
        """Return how many steps from now on can only be decodes of the same sequences, if nobody calls."""
        if self._batch.prefilling or self._batch.someone_left or self._failure is not None:
            return 1
        to_end = self._batch.steps_to_first_end
        if self._blocked or not self._queue:
            return to_end
        if not looked or self._unsettled:
            return 1
        # Too few wait to pause what runs: after so many steps they may join whatever their number.
        return min(to_end, max(self._parameters.max_waiting_steps - self._steps_since_join, 1))

    def _join(self, at: float, results: list[Result]) -> tuple[tuple[Entry, ...], JoinReason | None]:
        reason: JoinReason | None = None
        if len(self._batch):
            room, reason = room_beside(self._parameters, self._batch, self.held_kv_tokens, self._steps_since_join)
        else:
            room = room_from_idle(self._parameters)
        joiners = take_from_front(self._queue, self._kv, room)
        self._blocked, self._unsettled = joiners.blocked, joiners.unsettled
        for dropped in joiners.dropped:
            results.append(dropped)
            del self._entries[dropped.key]
        for entry in joiners.entries:
            entry.phase = Phase.PREFILL
            entry.started_at = at if entry.started_at is None else entry.started_at
        self._batch.join(joiners.entries)
        return joiners.entries, reason if joiners.entries else None

    def _pass_steps(self, step: RunningStep, now: float, results: list[Result]) -> None:
        """Let the decodes of a stretch end that are due before its last."""
        passed = min(step.stretch.steps_by(now), step.stretch.steps - 1)
        if passed > self._steps_told:
            self._tell_steps(step, passed, step.stretch.ended_at(passed), results)

    def _tell_steps(
        self, step: RunningStep, upto: int, at: float, results: list[Result], *, failed: bool = False
    ) -> None:
        count = upto - self._steps_told
        seconds = at - step.stretch.ended_at(self._steps_told)
        results.append(StepsEnded(step.kind, count, seconds, len(step.joined), step.join_reason, failed))
        self._steps_told = upto
        if failed:
            return
        if step.decodes:
            self._batch.pass_decode_steps(count)
        if step.kind is StepKind.DECODE:
            self._steps_since_join += count

    def _end_step(self, step: RunningStep, at: float, results: list[Result]) -> None:
        failure, self._failure = self._failure, None
        self._tell_steps(step, step.stretch.steps, at, results, failed=failure is not None)
        if failure is not None:
            self._lose(step, failure, results)
            return
        batch = self._batch
        started = work_through_prompts(batch.prefilling, len(batch), self._parameters.max_batch_prefill_tokens)
        batch.begin_decoding(started)
        due = batch.take_due()
        left = batch.noticed_left() if step.decodes else [entry for entry in started if entry.abandoned]
        for entry in sorted({*started, *due, *left}, key=lambda entry: entry.order):
            if entry.abandoned:
                results.append(Dropped(entry.key, while_queued=False))
                self._forget(entry)
                continue
            if entry in started and not entry.earlier_tokens:
                results.append(FirstToken(entry.key, at))
            if entry in due:
                self._end_chunk(entry, at, results)

    def _lose(self, step: RunningStep, message: str, results: list[Result]) -> None:
        for entry in tuple(self._batch.members) if step.decodes else step.joined:
            results.append(Dropped(entry.key, while_queued=False) if entry.abandoned else Failed(entry.key, message))
            self._forget(entry)

    def _end_chunk(self, entry: Entry, at: float, results: list[Result]) -> None:
        produced = self._produced(entry)
        reason = finish_reason(entry, produced)
        plan = next_chunk(self._parameters, entry, produced) if reason is FinishReason.LENGTH else None
        if plan is None:
            started_at = at if entry.started_at is None else entry.started_at
            results.append(Ended(entry.key, reason, produced, entry.queued_at, started_at, at))
            self._forget(entry)
        else:
            results.append(ChunkQueued(entry.key, plan.input_tokens, plan.chunk_tokens))
            self._queue_again(entry, plan, produced, at)

    def _queue_again(self, entry: Entry, plan: OutputPlan, produced_tokens: int, at: float) -> None:
        self._stop_running(entry)
        entry.earlier_tokens = produced_tokens
        entry.input_tokens = max(plan.input_tokens, 1)
        entry.chunk_tokens = plan.chunk_tokens
        entry.cached_tokens = entry.prefilled_tokens = entry.next_prefill_tokens = 0
        entry.phase = Phase.QUEUED
        self._join_tail(entry, at)

    def _produced(self, entry: Entry) -> int:
        return entry.earlier_tokens + self._batch.chunk_tokens(entry)

    def _stop_running(self, entry: Entry) -> None:
        self._batch.remove(entry)
        self._kv.free(entry.key)
        entry.blocks = 0

    def _forget(self, entry: Entry) -> None:
        self._stop_running(entry)
        self._permits.discard(entry.key)
        del self._entries[entry.key]
