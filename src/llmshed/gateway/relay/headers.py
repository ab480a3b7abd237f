"""Headers across the relay: what of the client's goes to the engine, what of the engine's to the client."""

import re
from collections.abc import Mapping

from multidict import CIMultiDict

from llmshed.engines.base import Call

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

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
    """Return the headers of a served answer: the engine's (TGI tells times and counts there) under the gateway's."""
    headers = CIMultiDict(
        (name, value)
        for name, value in engine.items()
        if name.lower() not in _OURS and not name.lower().startswith(("x-llmshed-", "x-should-retry"))
    )
    for name, value in own.items():
        headers[name] = value
    return headers
