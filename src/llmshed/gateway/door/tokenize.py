"""TGI's counting routes, answered here by the pool's own tokenizer: exact, and no work for the replicas.

The engine's tokenizer workers serve live traffic too, so clients that only count would slow everybody down. Prompts
with images are the exception that is refused: only the engine knows how many tokens an image takes.
"""

from functools import partial

import orjson
from aiohttp import web

from llmshed.engines.base import Call, Route
from llmshed.errors import PromptError, TokenizerError
from llmshed.gateway.contract.answer_headers import common_headers
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.door.reading import check_open, read_call
from llmshed.gateway.door.visit import Visit
from llmshed.observability.endings import Phase
from llmshed.tokenizing.counter import ExactCounter
from llmshed.tokenizing.prompts import IdsPrompt


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
    began = gateway.clock.now()
    try:
        body = await gateway.counting.run(partial(_listed, counter, call), visit.prompt_sizes[0])
    finally:
        visit.counted_seconds = gateway.clock.now() - began
    headers = common_headers(visit.request_id, model=pool.model, timings=visit.timings(gateway.clock.now()))
    return web.Response(body=body, headers={**headers, "content-type": "application/json"})


def _listed(counter: ExactCounter, call: Call) -> bytes:
    """Return the tokens of the call's prompt as TGI lists them."""
    (prompt,) = call.prompts
    if isinstance(prompt, IdsPrompt):
        raise PromptError("inputs: token ids are tokens already")
    if call.images:
        raise PromptError("a prompt with images is only counted as part of a request, by the engine")
    text = counter.render(prompt)
    tokens = [
        {"id": span.token_id, "text": span.text, "start": span.start, "stop": span.stop} for span in counter.spans(text)
    ]
    if call.route is Route.CHAT_TOKENIZE:
        return orjson.dumps({"tokenize_response": tokens, "templated_text": text.text})
    return orjson.dumps(tokens)
