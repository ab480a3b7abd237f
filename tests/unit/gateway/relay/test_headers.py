"""What crosses the relay in each direction."""

import pytest

from llmshed.engines.base import Call, Route
from llmshed.gateway.relay.headers import client_headers, engine_headers

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def call(*, streamed: bool) -> Call:
    return Call(Route.CHAT, {}, streamed, None, ())


def test_of_the_client_only_a_trace_reaches_the_engine() -> None:
    client = {"Authorization": "Bearer k", "Cookie": "a=1", "traceparent": TRACE, "X-Api-Key": "k", "Host": "x"}
    assert engine_headers(call(streamed=True), client) == {
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        "traceparent": TRACE,
    }
    assert engine_headers(call(streamed=False), {})["Accept"] == "application/json"


@pytest.mark.parametrize("trace", ["", TRACE + "\r\nx: y", TRACE.upper(), TRACE + "0", "0" * 10_000])
def test_a_malformed_trace_stays_behind(trace: str) -> None:
    assert "traceparent" not in engine_headers(call(streamed=False), {"traceparent": trace})


def test_the_gateways_own_headers_win_over_the_engines() -> None:
    engine = {
        "Content-Type": "application/json",
        "X-Queue-Time": "3",
        "X-Request-Id": "theirs",
        "Retry-After": "9",
        "X-Should-Retry": "true",
        "X-Llmshed-Lane": "forged",
        "Server": "tgi",
        "Set-Cookie": "a=1",
        "Content-Length": "5",
        "X-Accel-Buffering": "yes",
    }
    own = {"x-request-id": "ours", "x-llmshed-lane": "bulk", "x-accel-buffering": "no"}
    assert dict(client_headers(engine, own)) == {
        "Content-Type": "application/json",
        "X-Queue-Time": "3",
        "x-accel-buffering": "no",
        "x-request-id": "ours",
        "x-llmshed-lane": "bulk",
    }


@pytest.mark.parametrize("character", [chr(code) for code in (*range(32), 127) if chr(code) != "\t"])
def test_a_header_that_cannot_be_written_again_is_left_out(character: str) -> None:
    engine = {"X-Broken": f"a{character}b", "X-Whole": "a\tb \u00e9"}
    assert dict(client_headers(engine, {})) == {"X-Whole": "a\tb \u00e9"}
