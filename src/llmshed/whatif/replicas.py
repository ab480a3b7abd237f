"""The simulated replicas at work: who runs where, when each has something to tell, and how busy each is."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from heapq import heappop, heappush
from typing import assert_never

from llmshed.simulation.limits import OutputPlan
from llmshed.simulation.model import ReplicaModel
from llmshed.simulation.results import (
    ChunkQueued,
    Dropped,
    Ended,
    Failed,
    FirstToken,
    Preempted,
    Result,
    StepKind,
    StepsEnded,
)
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence
from llmshed.whatif.report import ReplicaUse
from llmshed.whatif.visits import Try

Told = FirstToken | Ended | Failed
"""What an engine tells whoever waits for an answer."""


class EngineRefusal(Enum):
    """Why an engine would not take a request by itself."""

    OVERLOADED = "engine_overloaded"
    """All its permits are taken."""
    INVALID = "engine_refused"
    """The request exceeds its limits."""


@dataclass(slots=True)
class Usage:
    """What a replica did, integrated over time."""

    since: float = 0.0
    kv_token_seconds: float = 0.0
    sequence_seconds: float = 0.0
    queued_seconds: float = 0.0
    decode_step_seconds: float = 0.0
    prefill_step_seconds: float = 0.0
    preemptions: int = 0
    dispatched: int = 0
    refused: int = 0


class ReplicaAtWork:
    """One replica and the tries whose sequences it holds.

    `tokens_per_second` is the rate at which output comes in the steps that run, as their first one tells.
    """

    def __init__(self, name: str, model: ReplicaModel) -> None:
        """Take a replica that is idle."""
        self.name = name
        self.model = model
        self.owners: dict[int, Try] = {}
        self.usage = Usage()
        self.tokens_per_second = 0.0

    def send(self, attempt: Try, ceiling_tokens: int | None, keys: tuple[int, ...], now: float) -> EngineRefusal | None:
        """Give all sequences of a request to the engine, or none if it refuses one; it must be advanced to `now`."""
        model, traced = self.model, attempt.visit.traced
        self.usage.dispatched += 1
        taken = [key for key in keys if model.take_permit(key)]
        if len(taken) < len(keys):
            self._leave(taken)
            return self._refused(EngineRefusal.OVERLOADED)
        end = NaturalEnd(traced.true_output_tokens, FinishReason.EOS)
        for key in keys:
            sequence = Sequence(
                key, traced.input_tokens, asked_output_tokens=ceiling_tokens, natural_end=end, blocks=traced.blocks
            )
            if not isinstance(model.submit(sequence, now), OutputPlan):
                self._leave(taken)
                return self._refused(EngineRefusal.INVALID)
        for key in keys:
            self.owners[key] = attempt
            attempt.open_sequences[key] = None
        return None

    def advance(self, now: float) -> list[tuple[Try, Told]]:
        """Bring the engine to `now`; returns what it told of tries that are still awaited, in order."""
        self._integrate(now)
        at = self.model.next_change_at
        told: list[tuple[Try, Told]] = []
        for result in self.model.advance(now):
            self._take(result, told)
        if at is not None and at <= now:
            self._begin_steps(now)
        return told

    def abandon(self, attempt: Try) -> bool:
        """Close the connections of what a try still runs here; say whether there was anything."""
        keys = [key for key, owner in self.owners.items() if owner is attempt]
        self._leave(keys)
        for key in keys:
            del self.owners[key]
            attempt.open_sequences.pop(key, None)
        return bool(keys)

    def _begin_steps(self, now: float) -> None:
        """Note the rate of the steps that have just begun: each gives a token to every sequence that runs.

        Too much by those whose prompt needs more steps, and by the growth of a step within a long stretch of decodes.
        """
        ends_at = self.model.next_step_at
        seconds = 0.0 if ends_at is None else ends_at - now
        self.tokens_per_second = self.model.batch_size / seconds if seconds > 0 else 0.0

    def _take(self, result: Result, told: list[tuple[Try, Told]]) -> None:
        match result:
            case FirstToken(key):
                if (attempt := self.owners.get(key)) is not None:
                    told.append((attempt, result))
            case Ended(key) | Failed(key):
                if (attempt := self.owners.pop(key, None)) is not None:
                    told.append((attempt, result))
            case StepsEnded(StepKind.PREFILL, seconds=seconds):
                self.usage.prefill_step_seconds += seconds
            case StepsEnded(seconds=seconds):
                self.usage.decode_step_seconds += seconds
            case Preempted():
                self.usage.preemptions += 1
            case ChunkQueued() | Dropped():
                pass
            case _:
                assert_never(result)

    def _leave(self, keys: Iterable[int]) -> None:
        for key in keys:
            self.model.leave(key)

    def _refused(self, refusal: EngineRefusal) -> EngineRefusal:
        self.usage.refused += 1
        return refusal

    def _integrate(self, now: float) -> None:
        usage, model = self.usage, self.model
        seconds = now - usage.since
        if seconds > 0:
            usage.since = now
            usage.kv_token_seconds += seconds * model.held_kv_tokens
            usage.sequence_seconds += seconds * model.batch_size
            usage.queued_seconds += seconds * model.queue_size

    def use(self, kv_tokens: int) -> ReplicaUse:
        """Return the figures up to where it was last advanced; a step that runs has not ended and does not count."""
        usage = self.usage
        elapsed = usage.since or 1.0
        return ReplicaUse(
            name=self.name,
            dispatched=usage.dispatched,
            refused=usage.refused,
            busy_share=(usage.prefill_step_seconds + usage.decode_step_seconds) / elapsed,
            prefill_share=usage.prefill_step_seconds / elapsed,
            kv_held_share=usage.kv_token_seconds / elapsed / kv_tokens,
            mean_sequences=usage.sequence_seconds / elapsed,
            mean_queued=usage.queued_seconds / elapsed,
            preemptions=usage.preemptions,
            preemptions_per_minute=60 * usage.preemptions / elapsed,
        )


class Replicas:
    """All replicas of a run, and which of them is due next.

    A heap holds one entry for each time that a replica's next change was asked for; an entry that a later one replaced
    is skipped. Equal times go by the order of the replicas.
    """

    def __init__(self, models: Mapping[str, ReplicaModel]) -> None:
        """Take replicas that are idle, in their order."""
        self._all = {name: ReplicaAtWork(name, model) for name, model in models.items()}
        self._places = {name: place for place, name in enumerate(models)}
        self._by_place = tuple(self._all.values())
        self._due: list[tuple[float, int]] = []
        self._next: list[float | None] = [None] * len(self._by_place)
        self._tokens = 0.0
        self._tokens_since = 0.0
        self._tokens_per_second = 0.0

    def __iter__(self) -> Iterator[ReplicaAtWork]:
        """Yield the replicas in their order."""
        return iter(self._by_place)

    def __getitem__(self, name: str) -> ReplicaAtWork:
        """Return the replica of a name."""
        return self._all[name]

    @property
    def next_at(self) -> float | None:
        """Return when the next replica has something to tell; None while all are idle."""
        while self._due and self._next[self._due[0][1]] != self._due[0][0]:
            heappop(self._due)
        return self._due[0][0] if self._due else None

    def advance_next(self, now: float) -> list[tuple[Try, Told]]:
        """Advance the replica that `next_at` means, and no other."""
        return self.advance(self._by_place[self._due[0][1]].name, now)

    def advance(self, name: str, now: float) -> list[tuple[Try, Told]]:
        """Advance one replica."""
        replica = self._all[name]
        before = replica.tokens_per_second
        told = replica.advance(now)
        if replica.tokens_per_second != before:
            self._tokens, self._tokens_since = self.tokens_by(now), now
            self._tokens_per_second = sum(one.tokens_per_second for one in self._by_place)
        self.note_change(name)
        return told

    def tokens_by(self, now: float) -> float:
        """Return about how many output tokens all have produced by now, from the rates of their steps.

        A stretch of decodes is one event here, and its tokens come one by one: whoever relays them is kept busy all
        along. `now` is not before the last change.
        """
        return self._tokens + self._tokens_per_second * (now - self._tokens_since)

    def note_change(self, name: str) -> None:
        """Ask a replica anew for its next change, after anything was done to it."""
        place = self._places[name]
        at = self._by_place[place].model.next_change_at
        if at != self._next[place]:
            self._next[place] = at
            if at is not None:
                heappush(self._due, (at, place))
