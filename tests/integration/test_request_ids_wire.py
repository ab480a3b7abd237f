"""Ids, paths and models of hostile clients over the socket: each answer has the fields that it should, no more."""

import asyncio
import re
from collections.abc import AsyncIterator
from random import Random

import pytest

from fakes.house import House, house, request_bytes
from fakes.wire import Answer, answers, talk

NATIVE = {"inputs": "Hello", "parameters": {"max_new_tokens": 1}}
FRESH = re.compile(r"req_[0-9a-f]{24}")
HARMLESS = re.compile(rb"[A-Za-z0-9._~-]{1,128}")
FIELDS = {
    "x-request-id", "request-id", "x-llmshed-lane", "server-timing", "content-type", "cache-control",
    "x-llmshed-reason", "x-should-retry", "content-length", "date", "connection", "www-authenticate", "allow",
}  # fmt: skip
"""Of a refusal that comes before a request is classified."""
PIECES = (
    b"\r\n", b"\n", b"\r", b"\x00", b"\x1b[31m", b"\x7f", b"\x85", b"\xe2\x80\xa8", b"\xff", b"\xc4\x8a", b"\t", b" ",
    b":", b"/", b"..", b"%0d%0a", b"%00", b'"', b"\\", b"a", b"Z9", b"-._~", b"x" * 140, b"Set-Cookie: a=1", b"data: x",
)  # fmt: skip


@pytest.fixture
async def gate() -> AsyncIterator[House]:
    async with house() as running:
        yield running


@pytest.mark.parametrize(
    "number", [200, pytest.param(1_000, marks=pytest.mark.slow), pytest.param(10_000, marks=pytest.mark.soak)]
)
async def test_no_id_and_no_path_adds_a_line_to_an_answer(gate: House, number: int) -> None:
    draw = Random(8)  # noqa: S311 - a seed, so that a failure can be repeated
    gates = asyncio.Semaphore(20)

    async def send(sent: bytes, path: bytes) -> None:
        lines = [b"GET /none" + path + b" HTTP/1.1", b"Host: x", b"Connection: close", b"X-Request-Id: " + sent]
        async with gates:
            told = answers(await talk(gate.port, b"\r\n".join(lines) + b"\r\n\r\n"))
        assert 1 <= len(told) <= 2  # what was sent may be two requests, if it has an empty line in it
        for answer in told:
            assert answer.status in {400, 404, 431}
            assert {name for name, _ in answer.fields} <= FIELDS
            _is_the_clients_or_fresh(answer, sent)

    drawn = [[b"".join(draw.choices(PIECES, k=draw.randrange(5))) for _ in range(2)] for _ in range(number)]
    await asyncio.gather(*(send(sent, path if draw.random() < 0.2 else b"") for sent, path in drawn))


def _is_the_clients_or_fresh(answer: Answer, sent: bytes) -> None:
    told = answer.field("x-request-id")
    assert told is not None
    assert told == answer.field("request-id") == answer.json()["request_id"]
    first = re.split(rb"\r?\n", sent)[0].strip(b" \t")
    assert FRESH.fullmatch(told) or (HARMLESS.fullmatch(first) and told.encode() == first)


async def test_names_of_models_stay_out_of_the_answer(gate: House) -> None:
    draw = Random(8)  # noqa: S311 - a seed, so that a failure can be repeated
    for _ in range(40):
        name = "canary" + b"".join(draw.choices(PIECES, k=3)).decode("utf-8", "replace")
        body = {"model": name, "messages": [{"role": "user", "content": "x"}]}
        (answer,) = answers(await talk(gate.port, request_bytes("/v1/chat/completions", body, "Connection: close")))
        assert (answer.status, answer.reason) == (404, "not_found")
        assert {name for name, _ in answer.fields} <= FIELDS
        assert "canary" not in str(answer)


async def test_ids_beyond_all_bounds_disturb_nobody_who_shares_theirs(gate: House) -> None:
    ids = ["same"] * 20 + ["x" * 1_000_000] * 3 + ["same\r\nX-Evil: 1", "same\r\n\r\nGET /evil HTTP/1.1\r\nHost: x"] * 5

    async def one(sent: str) -> list[Answer]:
        lines = ("Connection: close", f"X-Request-Id: {sent}")
        return answers(await talk(gate.port, request_bytes("/generate", NATIVE, *lines)))

    told = await asyncio.gather(*map(one, ids))
    for sent, (answer, *more) in zip(ids, told, strict=True):
        if sent == "same":
            assert (answer.status, answer.field("x-request-id"), more) == (200, "same", [])
        elif len(sent) > 1_000:
            assert (answer.status, answer.reason, more) == (431, "headers_too_large", [])
        assert "evil" not in str(answer.fields)
    served = [line for line in gate.decisions if line["status"] == 200]
    assert {line["request_id"] for line in served} == {"same"}
    assert len(served) >= 20
