"""What is refused at the door: under which status and reason, in which dialect, and at what cost."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from fakes.house import House, house, raw, request_bytes, until
from llmshed.gateway.relay.stream import StreamRelay
from llmshed.tokenizing.counter import ExactCounter

NATIVE = {"inputs": "Hello", "parameters": {"max_new_tokens": 2}}
CHAT = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def gate() -> AsyncIterator[House]:
    async with house("[server]\nmax_body_bytes = 100_000\nbody_timeout_seconds = 0.5\n") as running:
        yield running


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"", 400, "malformed"),
        (b"[]", 400, "malformed"),
        (b"{", 400, "malformed"),
        (b'{"inputs":"a","inputs":"b"}', 400, "duplicate_key"),
        (b'{"inputs":"a","parameters":{"max_new_tokens":2,"max_new_tokens":3}}', 400, "duplicate_key"),
        (b'{"inputs":"\\ud800"}', 400, "malformed"),
        (b'{"inputs":NaN}', 400, "malformed"),
        (b'{"inputs":' + b"[" * 100 + b"]" * 100 + b"}", 400, "malformed"),
        (b'{"inputs":"a","parameters":{"max_new_tokens":true}}', 400, "malformed"),
        (b'{"inputs":"a","parameters":{"max_new_tokens":0}}', 400, "malformed"),
        (b'{"inputs":"a","parameters":{"max_new_tokens":99999999999}}', 400, "malformed"),
        (b'{"inputs":"a","parameters":{"truncate":5}}', 400, "unsupported_field"),
        (b'{"inputs":"a","api_base":"http://evil"}', 400, "unsupported_field"),
        (b'{"inputs":"' + b"x" * 100_000 + b'"}', 413, "body_too_large"),
    ],
)
async def test_a_bad_body_has_its_reason_and_the_next_good_one_is_served(
    gate: House, body: bytes, status: int, reason: str
) -> None:
    got = await gate.ask("POST", "/generate", data=body, headers=JSON)
    assert (got.status, got.reason) == (status, reason)
    assert got.headers["x-should-retry"] == "false"
    assert "Retry-After" not in got.headers
    assert got.json()["error_type"] == "validation"
    assert (await gate.post("/generate", NATIVE)).status == 200
    line = await gate.decision(lambda line: line["status"] != 200)
    assert (line["ending"], line["termination"], line["reason"]) == ("refused", "GB" if status == 400 else "GA", reason)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"Content-Type": "text/plain"}, "content_encoding"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, "content_encoding"),
        ({**JSON, "Content-Encoding": "gzip"}, "content_encoding"),
        ({**JSON, "Content-Encoding": "br"}, "content_encoding"),
    ],
)
async def test_a_body_of_another_form_is_415(gate: House, headers: dict[str, str], reason: str) -> None:
    got = await gate.ask("POST", "/v1/chat/completions", data=b"\x1f\x8b garbage", headers=headers)
    assert (got.status, got.json()["error"]["code"]) == (415, reason)


async def test_headers_have_bounds_and_are_told_in_the_dialect_of_the_route(gate: House) -> None:
    many = {f"x-{n}": "v" for n in range(80)}
    got = await gate.post("/v1/chat/completions", CHAT, many)
    assert (got.status, got.json()["error"]["code"]) == (431, "headers_too_large")
    long = await gate.post("/generate", NATIVE, {"x-long": "v" * 9000})
    assert (long.status, long.json()["code"]) == (431, "headers_too_large")


async def test_what_is_no_http_is_told_as_json_and_closed(gate: House) -> None:
    async with raw(gate) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 30)
    assert answer.startswith(b"HTTP/1.")
    assert b" 400 " in answer.splitlines()[0]
    assert b'"code":"malformed"' in answer
    assert b"x-request-id: req_" in answer


@pytest.mark.parametrize(
    ("version", "codings"),
    [
        ("1.1", ["gzip, chunked"]),
        ("1.1", ["identity, chunked"]),
        ("1.1", ["chunked", "chunked"]),
        ("1.1", ["xchunked"]),
        ("1.0", ["chunked"]),
    ],
)
async def test_a_framing_that_others_may_read_otherwise_is_refused_and_closed(
    gate: House, version: str, codings: list[str]
) -> None:
    lines = [f"POST /generate HTTP/{version}", "Host: x", "Content-Type: application/json"]
    lines += [f"Transfer-Encoding: {coding}" for coding in codings]
    async with raw(gate) as (reader, writer):
        body = '{"inputs":"Hello"}'
        writer.write("\r\n".join([*lines, "", f"{len(body):x}", body, "0", "", ""]).encode())
        answer = await asyncio.wait_for(reader.read(), 30)
    assert b" 400 " in answer.splitlines()[0]
    assert b"malformed" in answer
    assert b"}HTTP/1" not in answer


async def test_a_chunked_body_is_cut_at_the_bound(gate: House) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"x" * 10_000

    got = await gate.ask("POST", "/generate", data=endless(), headers=JSON)
    assert (got.status, got.reason) == (413, "body_too_large")
    assert got.headers["Connection"] == "close"


async def test_a_body_that_comes_too_slowly_is_refused_and_its_connection_closed(gate: House) -> None:
    async with raw(gate) as (reader, writer):
        writer.write(request_bytes("/generate", NATIVE)[:-5])
        answer = await asyncio.wait_for(reader.read(), 30)
    assert b" 400 " in answer.splitlines()[0]
    assert b"too slowly" in answer
    line = await gate.decision()
    assert (line["reason"], line["termination"]) == ("malformed", "GB")


async def test_an_unknown_model_is_404_with_the_models_that_are_served(gate: House) -> None:
    got = await gate.post("/v1/chat/completions", {**CHAT, "model": "gpt-canary"})
    error = got.json()["error"]
    assert (got.status, error["code"], error["param"]) == (404, "not_found", "model")
    assert "llmshed/simulated" in error["message"]
    assert "canary" not in error["message"]
    for known in ("tgi", "dummy", "llmshed/simulated"):
        assert (await gate.post("/v1/chat/completions", {**CHAT, "model": known})).status == 200


async def test_a_deadline_that_has_passed_is_told_as_infeasible() -> None:
    async with house("[counting]\ninline_bytes = 0\n") as gate:
        text = "some words to count " * 20_000
        body = {"inputs": text, "parameters": {"max_new_tokens": 2}}
        got = await gate.post("/tokenize", {"inputs": "x"})
        assert got.status == 200
        refused = await gate.post("/generate", {**body, "inputs": text[:20_000]}, {"x-llmshed-deadline-ms": "1"})
        assert (refused.status, refused.reason) == (429, "deadline_infeasible")
        assert refused.headers["x-should-retry"] == "false"


@pytest.mark.parametrize(
    ("headers", "param"),
    [
        ({"x-llmshed-deadline-ms": "soon"}, "x-llmshed-deadline-ms"),
        ({"x-llmshed-intent": "urgent"}, "x-llmshed-intent"),
        ({"x-llmshed-class": "top"}, "x-llmshed-class"),
        ({"x-llmshed-session": ""}, "x-llmshed-session"),
    ],
)
async def test_our_own_headers_are_never_guessed(gate: House, headers: dict[str, str], param: str) -> None:
    got = await gate.post("/v1/chat/completions", CHAT, headers)
    assert (got.status, got.json()["error"]["param"]) == (400, param)


async def test_foreign_headers_that_cannot_be_read_are_ignored(gate: House) -> None:
    foreign = {"x-envoy-expected-rq-timeout-ms": "0", "grpc-timeout": "soon", "x-slo-ttft-ms": "-4"}
    assert (await gate.post("/generate", NATIVE, foreign)).status == 200


async def test_what_does_not_fit_now_is_429_with_every_header_of_the_contract(gate: House) -> None:
    big = {"inputs": "Hello", "parameters": {"max_new_tokens": 7168}}  # whole chunks: no overrun
    async with gate.session.post(f"{gate.data}/generate_stream", json=big) as stream:
        assert stream.status == 200
        await stream.content.readany()
        got = await gate.post("/v1/chat/completions", {**CHAT, "max_tokens": 1024})
        assert (got.status, got.reason) == (429, "token_budget_exhausted")
        error = got.json()["error"]
        assert error["type"] == "rate_limit_error"
        assert error["limits"]["max_input_tokens"] == 4096
        assert int(got.headers["Retry-After"]) >= 1
        assert int(got.headers["retry-after-ms"]) <= 1000 * int(got.headers["Retry-After"])
        line = await gate.decision(lambda line: line["status"] == 429)
        assert line["equation"]["active_tokens"] == 7169
        assert line["fits"] is False
        assert line["retry_after_seconds"] == pytest.approx(int(got.headers["retry-after-ms"]) / 1000)
        # A refused request charges nothing: exactly what is left still fits, and not one token more.
        assert (await gate.post("/generate", {"inputs": "Hello", "parameters": {"max_new_tokens": 1023}})).status == 429
        left = {"inputs": "Hello", "parameters": {"max_new_tokens": 1022}}
        async with gate.session.post(f"{gate.data}/generate_stream", json=left) as last:
            assert last.status == 200
            assert gate.active_tokens() == 8192


async def test_a_session_is_written_down_hashed_and_by_tenant(gate: House) -> None:
    for session in ("conversation-canary", "conversation-canary", "other"):
        await gate.post("/generate", NATIVE, {"x-llmshed-session": session})
    await gate.post("/v1/chat/completions", {**CHAT, "prompt_cache_key": "conversation-canary"})
    same, again, other, hinted = (line["session"] for line in gate.decisions)
    assert same == again == hinted != other
    assert "canary" not in str(gate.decisions)


@pytest.mark.parametrize("given", ["ok-1.~_", "", "bad id", "x" * 129, "ü"])
async def test_a_clients_id_is_echoed_only_if_it_is_harmless(gate: House, given: str) -> None:
    got = await gate.post("/generate", NATIVE, {"x-request-id": given})
    echoed = got.headers["x-request-id"]
    assert echoed == given if given == "ok-1.~_" else echoed.startswith("req_")


async def test_a_crash_of_ours_is_a_json_500_without_details(gate: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise RuntimeError("canary")

    monkeypatch.setattr(gate.daemon.gateway.driver, "gate", crash)
    got = await gate.post("/v1/chat/completions", CHAT)
    assert (got.status, got.json()["error"]["code"]) == (500, "internal_error")
    assert got.headers["x-should-retry"] == "false"
    assert b"canary" not in got.body


async def test_a_crash_in_a_stream_breaks_it_off_and_begins_no_second_answer(
    gate: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_progress, noted = StreamRelay._note_progress, 0

    def crash(self: StreamRelay) -> None:
        nonlocal noted
        noted += 1
        if noted == 3:
            raise RuntimeError("canary")
        note_progress(self)

    monkeypatch.setattr(StreamRelay, "_note_progress", crash)
    async with raw(gate) as (reader, writer):
        writer.write(request_bytes("/generate_stream", {"inputs": "Hello", "parameters": {"max_new_tokens": 50}}))
        answer = await asyncio.wait_for(reader.read(), 30)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(b"HTTP/1.1 200")
    assert not answer.endswith(b"0\r\n\r\n")
    line = await gate.decision()
    assert (line["ending"], line["termination"], line["reason"]) == ("failed", "GD", "internal_error")
    await until(lambda: gate.active_tokens() == 0)


async def test_prompts_whose_bytes_prove_too_much_are_refused_uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(*_: object) -> None:
        raise AssertionError("it was counted")

    async with house() as gate:
        monkeypatch.setattr(ExactCounter, "steps", counted)
        got = await gate.post("/generate", {"inputs": "word " * 190_000, "parameters": {"max_new_tokens": 5}})
        assert (got.status, got.reason) == (413, "context_limit")
        assert "At least" in got.json()["error"]
        assert "Input tokens exceed the configured limit" in got.json()["error"]
        assert got.headers["x-llmshed-model"] == "llmshed/simulated"
        assert "x-llmshed-input-tokens" not in got.headers
        assert "usage" not in got.json()
        line = await gate.decision()
        assert (line["input_tokens"], line["reservation"], line["model"]) == (None, None, "llmshed/simulated")
