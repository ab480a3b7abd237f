"""Reading a body, and running one sequence to its end for a whole answer."""

import asyncio
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from aiohttp import web

from llmshed.emulator.failures import TgiError, text_answer
from llmshed.emulator.forms import Form, FormError, read_form
from llmshed.emulator.gate import Gate
from llmshed.emulator.infer import Ask, Infer, OutputToken, Run
from llmshed.emulator.replica import Live, Replica
from llmshed.emulator.telling import Timings, answer_headers, record_success, timings
from llmshed.simulation.results import Ended

F = TypeVar("F", bound=Form)


@dataclass(frozen=True, slots=True)
class Collected:
    """A sequence that ran to its end."""

    run: Run
    tokens: list[OutputToken]
    ended: Ended

    @property
    def text(self) -> str:
        """Return the generated text."""
        return self.run.text(self.ended.output_tokens)

    @property
    def mean_logprob(self) -> float:
        """Return what `best_of` compares."""
        return sum(token.logprob for token in self.tokens) / len(self.tokens)


@dataclass(frozen=True, slots=True)
class Whole(Collected):
    """A sequence that was recorded as a success, with what is told of its work."""

    times: Timings
    headers: dict[str, str]


async def read_body(request: web.Request, form: type[F]) -> F | web.Response:
    """Read and check a body in the order of axum's extractor; a body that fails is answered in plain text."""
    body = await read_json(request)
    if isinstance(body, web.Response):
        return body
    try:
        return read_form(form, body)
    except FormError as error:
        return unreadable(str(error))


async def read_json(request: web.Request) -> Any:
    """Read a body as JSON; one that is none is answered in plain text, and the answer is returned."""
    kind = request.content_type
    if not (kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))):
        return text_answer(415, "Expected request with `Content-Type: application/json`")
    try:
        data = await request.read()
    except web.HTTPRequestEntityTooLarge:
        return text_answer(413, "Failed to buffer the request body: length limit exceeded")
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return text_answer(400, f"Failed to parse the request body as JSON: {error}")


def unreadable(reason: str) -> web.Response:
    """Return axum's answer to JSON of the wrong shape."""
    return text_answer(422, f"Failed to deserialize the JSON body into the target type: {reason}")


async def collect(run: Run, gate: Gate) -> Collected:
    """Take a sequence's tokens to its end.

    Raises:
        TgiError: the batch failed.
    """
    tokens = []
    while True:
        token = await run.next()
        tokens.append(token)
        await gate.after_event()
        if token.ended is not None:
            return Collected(run, tokens, token.ended)


def finish(replica: Replica, collected: Collected) -> Whole:
    """Record a sequence as a success that ends now."""
    run, ended = collected.run, collected.ended
    times = timings(run, ended, replica.clock.now())
    record_success(replica, times, ended)
    return Whole(run, collected.tokens, ended, times, answer_headers(run, times, ended))


async def run_wholes(replica: Replica, runs: list[Run], gate: Gate) -> list[tuple[int, Whole]]:
    """Collect and record sequences side by side; each comes with its place, in the order in which they end.

    Raises:
        TgiError: the batch failed; the others are let go.
    """
    wholes: list[tuple[int, Whole]] = []

    async def follow(place: int, run: Run) -> None:
        wholes.append((place, finish(replica, await collect(run, gate))))

    try:
        async with asyncio.TaskGroup() as group:
            for place, run in enumerate(runs):
                group.create_task(follow(place, run))
    except* TgiError as errors:
        first = errors.exceptions[0]
    else:
        return sorted(wholes, key=lambda one: (one[1].ended.at, one[0]))
    raise first


async def generate_whole(replica: Replica, infer: Infer, ask: Ask, live: Live, gate: Gate) -> Whole:
    """Start one sequence and collect it.

    Raises:
        TgiError: it was refused, or the batch failed.
    """
    replica.metrics.count("tgi_request_count")
    run = await infer.start(ask, live, refused=gate.refused)
    return finish(replica, await collect(run, gate))
