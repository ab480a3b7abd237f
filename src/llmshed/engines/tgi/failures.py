"""How Text Generation Inference tells of failures, in a status or inside a stream.

Whole answers carry a true status and `{"error": text, "error_type": word}`, or plain text where the HTTP layer refused
the body. Native streams carry the same object as an event. Streams of the `/v1` routes carry
`{"error": {"message": text, "http_status_code": 422}}` whatever the cause, so there only the text tells.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from llmshed.engines.base import EngineFailure, UpstreamFault

MAX_MESSAGE_CHARACTERS: Final = 2000
"""A message may quote the request, a whole image even."""


class _Cause(NamedTuple):
    fault: UpstreamFault
    status: int


_BY_TYPE: Final[Mapping[str, _Cause]] = {
    "overloaded": _Cause(UpstreamFault.BUSY, 429),
    "validation": _Cause(UpstreamFault.CLIENT, 422),
    "template_error": _Cause(UpstreamFault.CLIENT, 422),
    "tool_error": _Cause(UpstreamFault.CLIENT, 422),
    "missing_template_variable": _Cause(UpstreamFault.CLIENT, 422),
    "suffix not supported": _Cause(UpstreamFault.CLIENT, 422),
    "batch size exceeded": _Cause(UpstreamFault.CLIENT, 422),
    "generation": _Cause(UpstreamFault.ENGINE, 424),
    "incomplete_generation": _Cause(UpstreamFault.ENGINE, 500),
    "incomplete_generation_stream": _Cause(UpstreamFault.ENGINE, 500),
    "stream_serialization_error": _Cause(UpstreamFault.ENGINE, 500),
    "healthcheck": _Cause(UpstreamFault.ENGINE, 503),
}
_TYPE_BY_TEXT: Final = (
    ("Model is overloaded", "overloaded"),
    ("Input validation error", "validation"),
    ("Template error", "template_error"),
    ("Missing template vatiable", "missing_template_variable"),  # spelt so by the engine
    ("Tool error", "tool_error"),
    ("Request failed during generation", "generation"),
    ("Incomplete generation stream", "incomplete_generation_stream"),
    ("Incomplete generation", "incomplete_generation"),
    ("Stream event serialization error", "stream_serialization_error"),
)
_BY_STATUS: Final[Mapping[int, UpstreamFault]] = {
    400: UpstreamFault.CLIENT,
    413: UpstreamFault.CLIENT,
    415: UpstreamFault.CLIENT,
    422: UpstreamFault.CLIENT,
    429: UpstreamFault.BUSY,
}
"""Any other status is the engine's: 401 and 403 are about the gateway's own key, 404 and 405 about its address."""
_TYPE_BY_FAULT: Final[Mapping[UpstreamFault, str]] = {
    UpstreamFault.BUSY: "overloaded",
    UpstreamFault.CLIENT: "validation",
    UpstreamFault.ENGINE: "generation",
}


def read_answer_failure(status: int, body: bytes) -> EngineFailure:
    """Read an answer whose status is not 200; a body of any bytes gives a failure."""
    event = _object(body)
    if event is None:
        return _told_by_status(status, body.decode(errors="replace").strip())
    text, error_type = _words(event)
    cause = _BY_TYPE.get(error_type)
    if cause is None:
        return _told_by_status(status, text)
    return EngineFailure(cause.fault, status, text, error_type)


def find_answer_failure(body: bytes) -> EngineFailure | None:
    """Return the failure that a body shows which came with status 200; None for an answer.

    An answer is a JSON object without an error, or the list of one in which `POST /` wraps it.
    """
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        parsed = None
    if isinstance(parsed, list) and parsed:
        parsed = parsed[0]
    if not isinstance(parsed, dict) or not parsed:
        return EngineFailure(
            UpstreamFault.ENGINE,
            200,
            "it answered 200 without an answer of its kind",
            _TYPE_BY_FAULT[UpstreamFault.ENGINE],
        )
    return read_event_failure(parsed) if parsed.get("error") else None


def read_event_failure(event: Mapping[str, Any]) -> EngineFailure:
    """Read an error event of a stream; the status is the one that the cause has in a whole answer."""
    text, error_type = _words(event)
    cause = _BY_TYPE.get(error_type, _Cause(UpstreamFault.ENGINE, 500))
    return EngineFailure(cause.fault, cause.status, text, error_type or _TYPE_BY_FAULT[cause.fault])


def _told_by_status(status: int, text: str) -> EngineFailure:
    fault = _BY_STATUS.get(status, UpstreamFault.ENGINE)
    message = text[:MAX_MESSAGE_CHARACTERS] or f"the engine answered {status} without a text"
    return EngineFailure(fault, status, message, _TYPE_BY_FAULT[fault])


def _words(event: Mapping[str, Any]) -> tuple[str, str]:
    """Return text and type of an error object of either form; the type is told by the text where it is not said."""
    error = event.get("error")
    if isinstance(error, Mapping):
        error = error.get("message")
    text = error[:MAX_MESSAGE_CHARACTERS] if isinstance(error, str) and error else "the engine told no reason"
    said = event.get("error_type")
    if isinstance(said, str) and said in _BY_TYPE:
        return text, said
    return text, next((error_type for start, error_type in _TYPE_BY_TEXT if text.startswith(start)), "")


def _object(body: bytes) -> Mapping[str, Any] | None:
    """Parse a body that may be JSON; None when it holds no error object."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return parsed if isinstance(parsed, dict) and "error" in parsed else None
