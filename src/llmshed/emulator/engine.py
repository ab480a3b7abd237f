"""The scheduler in real time: one timer on the event loop, results handed to whoever waits for them."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from llmshed.clock import Clock
from llmshed.emulator.failures import TgiError, lost_batch, over_limit, overloaded
from llmshed.emulator.metrics import TgiMetrics
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
    StepsEnded,
)
from llmshed.simulation.sequences import Sequence, SequenceView


@dataclass(frozen=True, slots=True)
class Progress:
    """One more token of a sequence; `ended` is set on its last."""

    index: int
    ended: Ended | None


class Generation:
    """The tokens of one sequence, as they come."""

    def __init__(self, key: int, plan: OutputPlan) -> None:
        """Begin empty; `plan` is what validation allowed."""
        self.key = key
        self.plan = plan
        self.told_tokens = 0
        self._news: asyncio.Queue[Progress | TgiError] = asyncio.Queue()

    def tell(self, output_tokens: int, ended: Ended | None = None) -> None:
        """Hand over the tokens up to number `output_tokens`; the last of them is the end if there is one."""
        for index in range(self.told_tokens + 1, output_tokens + 1):
            self._news.put_nowait(Progress(index, ended if index == output_tokens else None))
        self.told_tokens = output_tokens

    def fail(self, error: TgiError) -> None:
        """Hand over that no more will come."""
        self._news.put_nowait(error)

    async def next(self) -> Progress:
        """Wait for the next token.

        Raises:
            TgiError: the batch failed.
        """
        news = await self._news.get()
        if isinstance(news, TgiError):
            raise news
        return news


class Engine:
    """Owns the model of one replica; every call must come from the event loop that it runs on."""

    def __init__(self, scheduler: ReplicaModel, clock: Clock, metrics: TgiMetrics) -> None:
        """Start with a scheduler that is idle and that nobody else changes."""
        self._scheduler = scheduler
        self._clock = clock
        self._metrics = metrics
        self._keys = count(1)
        self._waiting: dict[int, Generation] = {}
        self._unwanted: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._step_ended = asyncio.Event()
        self.is_sound = True
        """False from when a caller is told of a failed batch until a health check has gone well."""

    def take_permit(self) -> int:
        """Take a permit and return the key of the sequence that holds it.

        Raises:
            TgiError: all are taken.
        """
        self._advance()
        key = next(self._keys)
        if not self._scheduler.take_permit(key):
            raise overloaded()
        return key

    def submit(self, sequence: Sequence) -> Generation:
        """Queue a counted sequence that holds a permit.

        Raises:
            TgiError: it exceeds a limit; its permit is free again.
        """
        now = self._advance()
        plan = self._scheduler.submit(sequence, now)
        if not isinstance(plan, OutputPlan):
            raise over_limit(plan)
        self._observe_validated(plan.input_tokens, plan.chunk_tokens)
        generation = self._waiting[sequence.key] = Generation(sequence.key, plan)
        self._arm()
        return generation

    def leave(self, key: int) -> None:
        """Note that nobody wants this sequence any more; after its end this does nothing."""
        self._advance()
        self._let_go(key)

    def leave_at_next_token(self, key: int) -> None:
        """Let go of a sequence as streamed completions do, which notice a gone client only when they next send."""
        if key in self._waiting:
            self._unwanted.add(key)

    def fail_batch(self, message: str) -> None:
        """Let the step that runs, or the next one, fail."""
        self._advance()
        self._scheduler.fail_step(message)

    def stall(self, seconds: float) -> None:
        """Hold the engine for `seconds` from now, instead of whatever stall there was; 0 lets it go on."""
        now = self._advance()
        self._scheduler.resume(now)
        self._scheduler.stall(now, seconds)
        self._arm()

    async def between_steps(self) -> None:
        """Wait for the end of the step that runs: until then the shards answer nobody."""
        if self._scheduler.batch_size > 0:
            await self._step_ended.wait()

    def sequences(self) -> Iterator[SequenceView]:
        """Return every sequence that the engine still knows, abandoned ones too."""
        return iter(self._scheduler.sequences())

    @property
    def held_kv_tokens(self) -> int:
        """Return the KV tokens held now."""
        return self._scheduler.held_kv_tokens

    @property
    def permits_in_use(self) -> int:
        """Return the permits taken now."""
        return self._scheduler.permits_in_use

    @property
    def queue_size(self) -> int:
        """Return the waiting entries, abandoned ones included."""
        return self._scheduler.queue_size

    @property
    def batch_size(self) -> int:
        """Return the running sequences."""
        return self._scheduler.batch_size

    def check(self) -> tuple[str, ...]:
        """Return the scheduler's broken invariants."""
        return self._scheduler.check()

    def close(self) -> None:
        """Stop the timer; what still waits is never answered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _advance(self) -> float:
        """Catch up with the clock, step by step, since every token is told by itself."""
        now = self._clock.now()
        while (at := self._scheduler.next_step_at) is not None and at <= now:
            self._deliver(self._scheduler.advance(at))
        # Nothing is due any more; what is asked of it next happens now.
        self._scheduler.advance(now)
        for key in [key for key in self._unwanted if key not in self._waiting]:
            self._let_go(key)
        return now

    def _let_go(self, key: int) -> None:
        self._waiting.pop(key, None)
        self._unwanted.discard(key)
        self._scheduler.leave(key)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._show_gauges()
        at = self._scheduler.next_step_at
        if at is not None:
            delay = max(at - self._clock.now(), 0.0)
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._advance()
        self._arm()

    def _show_gauges(self) -> None:
        self._metrics.put("tgi_queue_size", self._scheduler.queue_size)
        self._metrics.put("tgi_batch_current_size", self._scheduler.batch_size)
        self._metrics.put("tgi_batch_current_max_tokens", self._scheduler.held_kv_tokens)

    def _deliver(self, results: list[Result]) -> None:
        for result in results:
            match result:
                case StepsEnded():
                    self._metrics.steps(result)
                    self._step_ended.set()
                    self._step_ended.clear()
                case Ended():
                    self._ended(result)
                case Failed():
                    self._failed(result)
                case Dropped():
                    self._metrics.count("tgi_request_failure", ("err", "dropped"))
                case ChunkQueued():
                    self._observe_validated(result.input_tokens, result.chunk_tokens)
                case FirstToken() | Preempted():
                    # A first token is told with all others; TGI preempts nothing.
                    pass
        for generation in tuple(self._waiting.values()):
            self._tell(generation, self._scheduler.output_tokens(generation.key), None)

    def _ended(self, ended: Ended) -> None:
        generation = self._waiting.pop(ended.key, None)
        if generation is not None:
            self._tell(generation, ended.output_tokens, ended)

    def _tell(self, generation: Generation, output_tokens: int, ended: Ended | None) -> None:
        new_tokens = output_tokens - generation.told_tokens
        if new_tokens <= 0:
            return
        # One step gave them all: those beyond the first were guessed.
        self._metrics.observe("tgi_request_skipped_tokens", new_tokens - 1)
        generation.tell(output_tokens, ended)
        if generation.key in self._unwanted:
            # Nobody reads this token: the sender finds out by it.
            self._waiting.pop(generation.key, None)

    def _failed(self, failed: Failed) -> None:
        self._metrics.count("tgi_request_failure", ("err", "generation"))
        generation = self._waiting.pop(failed.key, None)
        if generation is not None:
            self.is_sound = False
            generation.fail(lost_batch(failed.message))

    def _observe_validated(self, input_tokens: int, chunk_tokens: int) -> None:
        self._metrics.observe("tgi_request_input_length", input_tokens)
        self._metrics.observe("tgi_request_max_new_tokens", chunk_tokens)
