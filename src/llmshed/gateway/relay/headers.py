"""Headers across the relay: what of the client's goes to the engine, what of the engine's to the client."""

import re
from collections.abc import Mapping

from multidict import CIMultiDict

from llmshed.engines.base import Call

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that no header value holds (RFC 9110, 5.5), though lenient parsers let some through."""
_OURS = frozenset({"content-length", "date", "request-id", "retry-after", "server", "set-cookie", "x-request-id"})
"""Headers of an engine that the gateway answers for itself, `x-should-retry` and `x-llmshed-*` beside them."""


def engine_headers(call: Call, client: Mapping[str, str]) -> dict[str, str]:
    """Return the headers for the engine: the client's own stay behind, its `Authorization` above all.

    Only a W3C `traceparent` of the right form goes on, which is what TGI reads for its traces.
    """
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream" if call.streamed else "application/json",
    }
    trace = client.get("traceparent", "")
    if _TRACEPARENT.fullmatch(trace):
        headers["traceparent"] = trace
    return headers


def client_headers(engine: Mapping[str, str], own: Mapping[str, str]) -> CIMultiDict[str]:
    """Return the headers of a served answer: the engine's (TGI tells times and counts there) under the gateway's.

    A header of the engine that cannot be written again is left out: it is not worth the answer.
    """
    headers = CIMultiDict(
        (name, value) for name, value in engine.items() if not _is_ours(name.lower()) and _CONTROL.search(value) is None
    )
    headers.update(own)
    return headers


def _is_ours(name: str) -> bool:
    return name in _OURS or name.startswith(("x-llmshed-", "x-should-retry"))
