"""The scheduler in real time: one timer on the event loop, results handed to whoever waits for them."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from llmshed.clock import Clock
from llmshed.emulator.failures import TgiError, lost_batch, over_limit, overloaded
from llmshed.emulator.metrics import TgiMetrics
from llmshed.simulation.limits import OutputPlan
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import ChunkQueued, Dropped, Ended, Failed, Result, StepEnded, TokenProduced
from llmshed.simulation.scheduler import Scheduler
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
        self._news: asyncio.Queue[Progress | TgiError] = asyncio.Queue()

    def put(self, news: Progress | TgiError) -> None:
        """Hand over a token or the end by an error."""
        self._news.put_nowait(news)

    async def next(self) -> Progress:
        """Wait for the next token.

        Raises:
            TgiError: the batch failed.
        """
        news = await self._news.get()
        if isinstance(news, TgiError):
            raise news
        return news


class _Unwanted(Generation):
    """A sequence of which the next token is found to have no reader."""

    def __init__(self, generation: Generation, leave: Callable[[int], None]) -> None:
        super().__init__(generation.key, generation.plan)
        self._leave = leave

    def put(self, news: Progress | TgiError) -> None:
        del news
        self._leave(self.key)


class Engine:
    """Owns the scheduler of one replica; every call must come from the event loop that it runs on."""

    def __init__(self, parameters: ReplicaParameters, clock: Clock, metrics: TgiMetrics) -> None:
        """Start idle."""
        self._scheduler = Scheduler(parameters)
        self._clock = clock
        self._metrics = metrics
        self._keys = count(1)
        self._waiting: dict[int, Generation] = {}
        self._timer: asyncio.TimerHandle | None = None

    def take_permit(self) -> int:
        """Take a permit and return the key of the sequence that holds it.

        Raises:
            TgiError: all are taken.
        """
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
        self._waiting.pop(key, None)
        self._scheduler.leave(key)

    def leave_at_next_token(self, key: int) -> None:
        """Let go of a sequence as streamed completions do, which notice a gone client only when they next send."""
        generation = self._waiting.get(key)
        if generation is not None:
            self._waiting[key] = _Unwanted(generation, self.leave)

    def fail_batch(self, message: str) -> None:
        """Let the step that runs, or the next one, fail."""
        self._scheduler.fail_step(message)

    def stall(self, seconds: float) -> None:
        """Hold the engine for `seconds` from now, instead of whatever stall there was; 0 lets it go on."""
        now = self._advance()
        self._scheduler.resume(now)
        self._scheduler.stall(now, seconds)
        self._arm()

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
        now = self._clock.now()
        self._deliver(self._scheduler.advance(now))
        return now

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
        ended = {result.key: result for result in results if isinstance(result, Ended)}
        for result in results:
            match result:
                case TokenProduced():
                    self._token(result, ended.get(result.key))
                case Failed():
                    self._failed(result)
                case Dropped():
                    self._metrics.count("tgi_request_failure", ("err", "dropped"))
                case ChunkQueued():
                    self._observe_validated(result.input_tokens, result.chunk_tokens)
                case StepEnded():
                    self._metrics.step(result)
                case Ended():
                    # Told with its last token.
                    pass

    def _token(self, token: TokenProduced, ended: Ended | None) -> None:
        self._metrics.observe("tgi_request_skipped_tokens", 0)
        is_last = ended is not None and ended.output_tokens == token.index
        generation = self._waiting.pop(token.key, None) if is_last else self._waiting.get(token.key)
        if generation is not None:
            generation.put(Progress(token.index, ended if is_last else None))

    def _failed(self, failed: Failed) -> None:
        self._metrics.count("tgi_request_failure", ("err", "generation"))
        generation = self._waiting.pop(failed.key, None)
        if generation is not None:
            generation.put(lost_batch(failed.message))

    def _observe_validated(self, input_tokens: int, chunk_tokens: int) -> None:
        self._metrics.observe("tgi_request_input_length", input_tokens)
        self._metrics.observe("tgi_request_max_new_tokens", chunk_tokens)
