"""A replica whose times can be worked out by hand: so many seats, and nobody slows anybody down.

A sequence that finds a seat works through its prompt at a fixed rate and then makes a token each `token_seconds`; the
others wait in order. It keeps the contract of `ReplicaModel` and shares no code with the schedulers.
"""

from dataclasses import dataclass
from math import floor

from llmshed.simulation.limits import InputTooLong, LimitProblem, OutputPlan
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import Ended, Failed, FirstToken, Result
from llmshed.simulation.sequences import FinishReason, Phase, Sequence, SequenceView


@dataclass(slots=True)
class _Run:
    sequence: Sequence
    queued_at: float
    started_at: float | None = None
    first_told: bool = False


class PlainReplica:
    def __init__(
        self,
        seats: int = 2,
        permits: int = 4,
        prefill_seconds: float = 0.01,
        token_seconds: float = 0.05,
        max_input_tokens: int = 1000,
    ) -> None:
        self._seats, self._permits_all = seats, permits
        self._prefill_seconds, self._token_seconds = prefill_seconds, token_seconds
        self._max_input_tokens = max_input_tokens
        self._validating: set[int] = set()
        self._queue: list[_Run] = []
        self._running: list[_Run] = []
        self.broken: tuple[str, ...] = ()
        self.lose: set[int] = set()  # sequences that fail where their first token is due

    queue_size = property(lambda self: len(self._queue))
    batch_size = property(lambda self: len(self._running))
    permits_in_use = property(lambda self: len(self._validating) + len(self._queue) + len(self._running))

    @property
    def held_kv_tokens(self) -> int:
        return sum(self._reserved(run) for run in self._running)

    @property
    def next_change_at(self) -> float | None:
        return min((self._next_of(run) for run in self._running), default=None)

    next_step_at = next_change_at

    def take_permit(self, key: int) -> bool:
        if self.permits_in_use >= self._permits_all:
            return False
        self._validating.add(key)
        return True

    def submit(self, sequence: Sequence, now: float) -> OutputPlan | LimitProblem:
        self._validating.remove(sequence.key)
        if sequence.input_tokens > self._max_input_tokens:
            return InputTooLong(self._max_input_tokens, sequence.input_tokens)
        self._queue.append(_Run(sequence, now))
        self._fill(now)
        ceiling = sequence.asked_output_tokens or 0
        return OutputPlan(sequence.input_tokens, ceiling, ceiling)

    def leave(self, key: int) -> None:
        self._validating.discard(key)
        self._queue = [run for run in self._queue if run.sequence.key != key]
        self._running = [run for run in self._running if run.sequence.key != key]

    def fail_step(self, message: str) -> None:
        raise NotImplementedError

    def stall(self, now: float, seconds: float) -> None:
        raise NotImplementedError

    def resume(self, now: float) -> None:
        raise NotImplementedError

    def advance(self, now: float) -> list[Result]:
        results: list[Result] = []
        while (at := self.next_change_at) is not None and at <= now:
            run = min(self._running, key=self._next_of)
            if run.sequence.key in self.lose:
                self._running.remove(run)
                results.append(Failed(run.sequence.key, "lost"))
            elif not run.first_told:
                run.first_told = True
                results.append(FirstToken(run.sequence.key, at))
            if run.first_told and self._next_of(run) <= at and run in self._running:
                self._running.remove(run)
                started_at = at if run.started_at is None else run.started_at
                tokens = self._tokens(run)
                results.append(Ended(run.sequence.key, FinishReason.EOS, tokens, run.queued_at, started_at, at))
            self._fill(at)
        self._at = now
        return results

    def output_tokens(self, key: int) -> int:
        for run in self._running:
            if run.sequence.key == key and run.first_told:
                return 1 + floor((self._at - self._first_at(run)) / self._token_seconds + 1e-9)
        return 0

    def cached_tokens(self, prompt: PromptBlocks | None, input_tokens: int) -> int:
        del prompt, input_tokens
        return 0

    def sequences(self) -> list[SequenceView]:
        return [
            SequenceView(run.sequence.key, phase, run.sequence.input_tokens, 0, None, 0, abandoned=False)
            for phase, runs in ((Phase.DECODE, self._running), (Phase.QUEUED, self._queue))
            for run in runs
        ]

    def check(self) -> tuple[str, ...]:
        return self.broken

    def _fill(self, now: float) -> None:
        while self._queue and len(self._running) < self._seats:
            run = self._queue.pop(0)
            run.started_at = now
            self._running.append(run)

    def _tokens(self, run: _Run) -> int:
        end = run.sequence.natural_end
        bounds = (run.sequence.asked_output_tokens, None if end is None else end.after_tokens)
        return min(bound for bound in bounds if bound is not None)

    def _reserved(self, run: _Run) -> int:
        return run.sequence.input_tokens + (run.sequence.asked_output_tokens or 0)

    def _first_at(self, run: _Run) -> float:
        return (run.started_at or 0.0) + run.sequence.input_tokens * self._prefill_seconds

    def _next_of(self, run: _Run) -> float:
        first_at = self._first_at(run)
        return first_at + (self._tokens(run) - 1) * self._token_seconds if run.first_told else first_at
