"""Reading a body, and running one sequence to its end for a whole answer."""

from dataclasses import dataclass
from typing import TypeVar

import orjson
from aiohttp import web

from llmshed.emulator.failures import text_answer
from llmshed.emulator.forms import Form, FormError, read_form
from llmshed.emulator.gate import Gate
from llmshed.emulator.infer import Ask, Infer, OutputToken, Run
from llmshed.emulator.replica import Live, Replica
from llmshed.emulator.telling import Timings, answer_headers, record_success, timings
from llmshed.simulation.results import Ended

PAYLOAD_LIMIT_BYTES = 2_000_000
F = TypeVar("F", bound=Form)


@dataclass(frozen=True, slots=True)
class Whole:
    """A sequence that ran to its end."""

    run: Run
    tokens: list[OutputToken]
    ended: Ended
    times: Timings
    headers: dict[str, str]

    @property
    def text(self) -> str:
        """Return the generated text."""
        return self.run.text(self.ended.output_tokens)

    @property
    def mean_logprob(self) -> float:
        """Return what `best_of` compares."""
        return sum(token.logprob for token in self.tokens) / len(self.tokens)


async def read_body(request: web.Request, form: type[F]) -> F | web.Response:
    """Read and check a body in the order of axum's extractor; a body that fails is answered in plain text."""
    kind = request.content_type
    if not (kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))):
        return text_answer(415, "Expected request with `Content-Type: application/json`")
    try:
        data = await request.read()
    except web.HTTPRequestEntityTooLarge:
        return text_answer(413, "Failed to buffer the request body: length limit exceeded")
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return text_answer(400, f"Failed to parse the request body as JSON: {error}")
    try:
        return read_form(form, body)
    except FormError as error:
        return unreadable(str(error))


def unreadable(reason: str) -> web.Response:
    """Return axum's answer to JSON of the wrong shape."""
    return text_answer(422, f"Failed to deserialize the JSON body into the target type: {reason}")


async def run_whole(replica: Replica, run: Run, gate: Gate) -> Whole:
    """Collect a sequence to its end and record it.

    Raises:
        TgiError: the batch failed.
    """
    tokens = []
    while True:
        token = await run.next()
        tokens.append(token)
        await gate.after_event()
        if token.ended is not None:
            break
    times = timings(run, token.ended, replica.clock.now())
    record_success(replica, times, token.ended)
    return Whole(run, tokens, token.ended, times, answer_headers(run, times, token.ended))


async def generate_whole(replica: Replica, infer: Infer, ask: Ask, live: Live, gate: Gate) -> Whole:
    """Start one sequence and collect it.

    Raises:
        TgiError: it was refused, or the batch failed.
    """
    replica.metrics.count("tgi_request_count")
    run = await infer.start(ask, live, refused=gate.refused)
    return await run_whole(replica, run, gate)
