"""Open-loop traffic for the bench in real time: what is sent when, and what came of each request.

Every request has its planned instant and is sent then, whatever became of those before; its waits count from that
instant, so that a gateway which is slow to answer cannot slow its own test down.
"""

import asyncio
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import aiohttp
import uvloop

INTERACTIVE_SHARE = 0.85
GIVE_UP_SECONDS = 150.0
_TOKEN = b'"token":{'
_END = b'"generated_text":"'


@dataclass(frozen=True, slots=True)
class Planned:
    """One request: when it is sent, after the start, and what."""

    at_seconds: float
    bulk: bool
    input_tokens: int
    ceiling_tokens: int


@dataclass(frozen=True, slots=True)
class Came:
    """What came of one request; times are seconds after its planned instant.

    Args:
        planned: the request.
        status: HTTP status; 0 when the connection failed.
        reason: why it was refused.
        answered_seconds: until the status line.
        first_token_seconds: until the first token; None without one.
        ended_seconds: until the end of the answer.
        output_tokens: tokens that were read.
        whole: whether the answer ended as it should.
    """

    planned: Planned
    status: int
    reason: str
    answered_seconds: float
    first_token_seconds: float | None
    ended_seconds: float
    output_tokens: int
    whole: bool

    @property
    def seconds_per_token(self) -> float:
        """Return the mean time of an output token after the first."""
        if self.first_token_seconds is None or self.output_tokens < 2:
            return 0.0
        return (self.ended_seconds - self.first_token_seconds) / (self.output_tokens - 1)


def plan(rate: float, seconds: float, seed: int) -> list[Planned]:
    """Return a seeded plan: Poisson arrivals; a higher rate has more of the same kinds of requests.

    Interactive prompts have 600 tokens in the median, 64 to 1,500, and ask for 128 to 512; bulk has 800 to 2,400 and
    256 to 1,024. The engines end answers by themselves, at 128 tokens in the mean.
    """
    rng = random.Random(seed)  # noqa: S311 - traffic, not secrets
    planned = []
    at = 0.0
    while (at := at + rng.expovariate(rate)) < seconds:
        if rng.random() < INTERACTIVE_SHARE:
            inputs = min(1500, max(64, round(math.exp(rng.gauss(math.log(600), 0.6)))))
            planned.append(Planned(at, False, inputs, rng.choice((128, 256, 512))))  # noqa: FBT003 - a field's value
        else:
            planned.append(Planned(at, True, rng.randint(800, 2400), rng.choice((256, 512, 1024))))  # noqa: FBT003 - a field's value
    return planned


def play(url: str, requests: Sequence[Planned]) -> list[Came]:
    """Send all requests at their instants and return what came of them, in their order."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_play(url, requests))


async def _play(url: str, requests: Sequence[Planned]) -> list[Came]:
    timeout = aiohttp.ClientTimeout(total=GIVE_UP_SECONDS)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
        began = time.perf_counter()
        tasks = []
        for number, one in enumerate(requests):
            await asyncio.sleep(began + one.at_seconds - time.perf_counter())
            tasks.append(asyncio.ensure_future(_one(session, url, one, number, began + one.at_seconds)))
        return list(await asyncio.gather(*tasks))


async def _one(session: aiohttp.ClientSession, url: str, planned: Planned, number: int, due: float) -> Came:
    body = {
        "inputs": " ".join(_words(planned, number)),
        "parameters": {"max_new_tokens": planned.ceiling_tokens},
    }
    headers = {"x-llmshed-intent": "bulk" if planned.bulk else "interactive"}
    first, tokens, whole, answered = None, 0, False, 0.0
    try:
        async with session.post(f"{url}/generate_stream", json=body, headers=headers) as answer:
            answered = time.perf_counter() - due
            reason = answer.headers.get("x-llmshed-reason", "")
            async for piece, _ in answer.content.iter_chunks():
                if answer.status == 200:
                    tokens += piece.count(_TOKEN)
                    whole = whole or _END in piece
                    if first is None and tokens:
                        first = time.perf_counter() - due
            status = answer.status
    except (aiohttp.ClientError, TimeoutError) as error:
        status, reason = 0, type(error).__name__
    return Came(planned, status, reason, answered, first, time.perf_counter() - due, tokens, whole)


def _words(planned: Planned, number: int) -> Iterator[str]:
    """Yield words of one token each; the first are the request's own, so that no two prompts are alike."""
    yield f"{number}"
    for _ in range(planned.input_tokens - 1):
        yield "word"
