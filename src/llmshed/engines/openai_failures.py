"""Failures in OpenAI's envelope as vLLM and llama.cpp write it: `{"error": {"message", "type", "code"}}`."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from llmshed.engines.base import EngineFailure, UpstreamFault

MAX_MESSAGE_CHARACTERS: Final = 2000
"""A message may quote the request."""
_NO_TYPE: Final = "error"
_BY_STATUS: Final[Mapping[int, UpstreamFault]] = {
    400: UpstreamFault.CLIENT,
    404: UpstreamFault.CLIENT,
    413: UpstreamFault.CLIENT,
    415: UpstreamFault.CLIENT,
    422: UpstreamFault.CLIENT,
    429: UpstreamFault.BUSY,
}
"""Any other status is the engine's; 404 is the client's, since these engines answer it to a model they do not run."""


def read_openai_answer(status: int, body: bytes, busy_texts: tuple[str, ...] = ()) -> EngineFailure:
    """Read an answer whose status is not 200; a body of any bytes gives a failure.

    `busy_texts` are parts of messages under which a 503 means that the engine refuses more than it can take.
    """
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        parsed = None
    if isinstance(parsed, dict) and "error" in parsed:
        return _failure(status, parsed["error"], busy_texts)
    return _failure(status, {"message": body.decode(errors="replace").strip()}, busy_texts)


def read_openai_event(event: Mapping[str, Any], busy_texts: tuple[str, ...] = ()) -> EngineFailure:
    """Read an event of a stream that holds an `error`, which tells the status that it would have had."""
    error = event["error"]
    code = error.get("code") if isinstance(error, Mapping) else None
    return _failure(code if type(code) is int and 400 <= code <= 599 else 500, error, busy_texts)


def _failure(status: int, error: object, busy_texts: tuple[str, ...]) -> EngineFailure:
    told = error if isinstance(error, Mapping) else {"message": error}
    text = told.get("message")
    message = text[:MAX_MESSAGE_CHARACTERS] if isinstance(text, str) and text else f"the engine told {status} alone"
    said = told.get("type")
    fault = _BY_STATUS.get(status, UpstreamFault.ENGINE)
    if status == 503 and any(busy in message for busy in busy_texts):
        fault = UpstreamFault.BUSY
    return EngineFailure(fault, status, message, said if isinstance(said, str) and said else _NO_TYPE)
