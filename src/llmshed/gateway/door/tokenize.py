"""TGI's counting routes, answered here by the pool's own tokenizer: exact, and no work for the replicas.

The engine's tokenizer workers serve live traffic too, so clients that only count would slow everybody down. Prompts
with images are the exception that is refused: only the engine knows how many tokens an image takes. So are prompts far
beyond any model, since listing a million tokens holds the interpreter, and with it every stream, for half a second.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

import orjson
from aiohttp import web

from llmshed.admission.reasons import Reason
from llmshed.engines.base import Call, Route
from llmshed.errors import PromptError, TokenizerError
from llmshed.gateway.contract.answer_headers import common_headers
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.counting.call_count import most_useful_tokens
from llmshed.gateway.counting.pool import EXACT_UP_TO
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.door.problems import RefusedError
from llmshed.gateway.door.reading import check_open, read_call
from llmshed.gateway.door.visit import Visit
from llmshed.observability.endings import Phase
from llmshed.tokenizing.counter import ExactCounter
from llmshed.tokenizing.prompts import IdsPrompt, TextPrompt

LISTED_TOKENS: Final = 131_072
"""Most tokens that are listed, unless a replica takes longer prompts: they hold the interpreter for some 40 ms."""
_SLICE_TOKENS: Final = 4_096
"""Tokens written in one go: a list of all would be looked through by the garbage collector again and again."""


async def serve(gateway: Gateway, visit: Visit) -> web.Response:
    """Serve `/tokenize` or `/chat_tokenize` in TGI's shapes.

    Raises:
        LlmshedError: whatever refuses it; `problems.problem_of` has the answer.
    """
    check_open(gateway, visit)
    pool, call = await read_call(gateway, visit)
    visit.phase = Phase.COUNTING
    counter = gateway.fleet.counter(pool.name)
    if not isinstance(counter, ExactCounter):
        raise TokenizerError(f"the tokenizer of pool {pool.name} cannot list its tokens")
    most = max(LISTED_TOKENS, most_useful_tokens(gateway, pool.model) or 0)
    began = gateway.clock.now()
    try:
        body = await gateway.counting.run(_listed(counter, call, most), visit.prompt_sizes[0])
    finally:
        visit.counted_seconds = gateway.clock.now() - began
    headers = common_headers(visit.request_id, model=pool.model, timings=visit.timings(gateway.clock.now()))
    return web.Response(body=body, headers={**headers, "content-type": "application/json"})


def _listed(counter: ExactCounter, call: Call, most_tokens: int) -> Iterator[bytes | None]:
    """Yield the tokens of the call's prompt as TGI lists them, after a None for each step on the way.

    Raises:
        RefusedError: there are more than `most_tokens`.
        PromptError: they cannot be listed.
    """
    (prompt,) = call.prompts
    if isinstance(prompt, IdsPrompt):
        raise PromptError("inputs: token ids are tokens already")
    if call.images:
        raise PromptError("a prompt with images is only counted as part of a request, by the engine")
    text = counter.render(prompt)
    yield from _refuse_beyond(most_tokens, counter, text)
    tokens = b",".join(_slices(counter, text))
    if call.route is Route.CHAT_TOKENIZE:
        yield b'{"tokenize_response":[%b],"templated_text":%b}' % (tokens, orjson.dumps(text.text))
    else:
        yield b"[%b]" % tokens


def _refuse_beyond(most_tokens: int, counter: ExactCounter, text: TextPrompt) -> Iterator[None]:
    """Refuse a text of more tokens; it is counted only if its bytes leave that open, since listing counts it again."""
    high = counter.bounds(text).high
    if high is not None and high <= most_tokens:
        return
    for count in counter.steps(text, EXACT_UP_TO * most_tokens):
        if count is None:
            yield None
        elif count.tokens > most_tokens:
            many = "at least " if count.is_bound else ""
            message = f"The prompt has {many}{count.tokens:,} tokens, and at most {most_tokens:,} are listed."
            raise RefusedError(
                Problem(Reason.CONTEXT_LIMIT, message, input_tokens=None if count.is_bound else count.tokens)
            )


def _slices(counter: ExactCounter, text: TextPrompt) -> Iterator[bytes]:
    """Yield the tokens as JSON, without the brackets around them."""
    spans = iter(counter.spans(text))
    while part := tuple(islice(spans, _SLICE_TOKENS)):
        tokens = [{"id": one.token_id, "text": one.text, "start": one.start, "stop": one.stop} for one in part]
        yield orjson.dumps(tokens)[1:-1]
