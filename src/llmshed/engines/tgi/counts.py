"""What Text Generation Inference answers on its counting routes."""

from typing import Final

import orjson

from llmshed.engines.base import Route
from llmshed.errors import EngineError

_BEGINS: Final = {Route.TOKENIZE: b'[{"id":', Route.CHAT_TOKENIZE: b'{"tokenize_response":[{"id":'}
"""How an answer with tokens in it begins, since TGI writes JSON without spaces and keys in one order."""

PARSED_BYTES: Final = 262_144
"""Longest answer that is parsed: a longer one would stop the event loop for as long as parsing takes."""
_TOKEN: Final = b'"id":'
STEP_BYTES: Final = 2**22
"""Looked through in one go: the interpreter is held for a few milliseconds by it, so that other threads come by."""


def read_token_count(route: Route, body: bytes) -> int:
    """Return the number of tokens that the engine lists.

    `/tokenize` answers a list of tokens, `/chat_tokenize` an object that holds one under `tokenize_response`. In a long
    answer the tokens' keys are counted instead: a quote inside a text is escaped, so what looks like that key is one.

    Raises:
        EngineError: the body has neither form.
    """
    if len(body) > PARSED_BYTES and body.startswith(_BEGINS[route]):
        beyond = STEP_BYTES + len(_TOKEN) - 1  # a key that straddles two steps belongs to the one it begins in
        return sum(body.count(_TOKEN, place, place + beyond) for place in range(0, len(body), STEP_BYTES))
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise EngineError(f"{route.value}: the answer is not JSON") from None
    if route is Route.CHAT_TOKENIZE:
        answer = answer.get("tokenize_response") if isinstance(answer, dict) else None
    if not isinstance(answer, list):
        raise EngineError(f"{route.value}: the answer holds no list of tokens")
    return len(answer)
