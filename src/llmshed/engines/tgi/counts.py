"""What Text Generation Inference answers on its counting routes."""

import orjson

from llmshed.engines.base import Route
from llmshed.errors import EngineError


def read_token_count(route: Route, body: bytes) -> int:
    """Return the number of tokens that the engine lists.

    `/tokenize` answers a list of tokens, `/chat_tokenize` an object that holds one under `tokenize_response`.

    Raises:
        EngineError: the body has neither form.
    """
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise EngineError(f"{route.value}: the answer is not JSON") from None
    if route is Route.CHAT_TOKENIZE:
        answer = answer.get("tokenize_response") if isinstance(answer, dict) else None
    if not isinstance(answer, list):
        raise EngineError(f"{route.value}: the answer holds no list of tokens")
    return len(answer)
