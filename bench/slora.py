"""S-LoRA's first come first served scheduler, as the run of the arena trace used it.

The rules follow slora/server/router/manager.py and req_queue.py of github.com/Ying1123/VTC-artifact at 192c2e2: a batch
decodes at least ten steps before others may join; those that join are prefilled while the batch pauses; a request joins
when the most KV that all will ever hold together, were each to end as late as it may, stays below the pool. With every
answer as long as it may be, running requests ordered by the tokens L that they still may produce, longest first, and H
tokens held by each:

    need = max over i of  L(i) x i + H(1) + ... + H(i)

Only what the comparison needs is here: step times, no HTTP, no cancelling.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from replaying import Outcome, Sent

from llmshed.simulation.cost import StepTimes, StepWork

STEPS_BETWEEN_JOINS = 10


@dataclass(slots=True)
class _Running:
    sent: Sent
    first_at: float = 0.0
    produced: int = 0

    @property
    def held(self) -> int:
        return self.sent.input_tokens + self.produced

    @property
    def left(self) -> int:
        return self.sent.output_tokens - self.produced - 1


@dataclass(frozen=True, slots=True)
class SloraPool:
    """The settings of the run: tokens of the KV pool and most prompt tokens that join at once."""

    kv_tokens: int
    prefill_tokens: int


def replay_slora(times: StepTimes, pool: SloraPool, requests: Iterable[Sent]) -> list[Outcome]:
    """Run requests through S-LoRA's scheduler, and return what came of them in the order of their ends.

    Raises:
        ValueError: a request does not fit the pool though nothing else runs.
    """
    coming, waiting = deque(requests), deque[Sent]()
    running: list[_Running] = []
    outcomes: list[Outcome] = []
    now, steps = 0.0, 0
    while coming or waiting or running:
        if not (waiting or running):
            now = max(now, coming[0].at)
        while coming and coming[0].at <= now:
            waiting.append(coming.popleft())
        joining = _join(pool, running, waiting) if not running or steps >= STEPS_BETWEEN_JOINS else []
        if not (joining or running):
            raise ValueError(f"the pool never has room for {waiting[0]}")
        if joining:
            now += times.seconds(_prefill(joining))
            steps = 0
        else:
            now += times.seconds(_decode(running))
            steps += 1
        for one in joining or running:
            one.produced += 1
            one.first_at = one.first_at or now
        running += joining
        outcomes += [Outcome(one.sent, one.first_at, now) for one in running if one.left < 0]
        running = [one for one in running if one.left >= 0]
    return outcomes


def _join(pool: SloraPool, running: list[_Running], waiting: deque[Sent]) -> list[_Running]:
    held = [(one.left, one.held) for one in running]
    joining: list[_Running] = []
    tokens = 0
    while waiting:
        head = waiting[0]
        held.append((head.output_tokens - 1, head.input_tokens + 1))
        tokens += head.input_tokens
        if _need(held) >= pool.kv_tokens or tokens > pool.prefill_tokens:
            break
        joining.append(_Running(waiting.popleft()))
    return joining


def _need(held: list[tuple[int, int]]) -> int:
    most = total = 0
    for count, (left, tokens) in enumerate(sorted(held, reverse=True), 1):
        total += tokens
        most = max(most, left * count + total)
    return most


def _prefill(joining: list[_Running]) -> StepWork:
    prompts = [one.sent.input_tokens for one in joining]
    return StepWork(prefill_tokens=sum(prompts), attention_pairs=sum(n * (n + 1) // 2 for n in prompts))


def _decode(running: list[_Running]) -> StepWork:
    return StepWork(decoding_sequences=len(running), resident_tokens=sum(one.held for one in running))
