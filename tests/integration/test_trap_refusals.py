"""A 413, a 429 and a 503 each mean one thing: too large for ever, busy with a time to come back, nobody there."""

import asyncio
import io
from typing import Any

import pytest

from fakes.front import Got
from fakes.house import JSON, house, until
from fakes.seats import PATIENT, SMALL, error_of, held, small_house, stuck, until_waiting

CHAT = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}
BRIEF = "[lanes.interactive]\nttft_objective_seconds = 1\nmax_residence_seconds = 0.5\n"
NO_QUEUE = "[lanes.interactive]\nqueue_requests = 0\n"

pytestmark = pytest.mark.slow


def assert_refused(got: Got, status: int, reason: str) -> None:
    """Hold an answer to what its status promises."""
    assert (got.status, got.reason) == (status, reason), got.body
    assert got.headers["Content-Type"] == "application/json"
    error = error_of(got)
    assert error["code"] == reason
    assert str(error["request_id"]) == got.headers["x-request-id"]
    assert ("Retry-After" in got.headers) is (status in {429, 503})
    if status == 413:
        assert got.headers["x-should-retry"] == "false"
    else:
        assert int(got.headers["Retry-After"]) >= 1
        assert 0 < int(got.headers["retry-after-ms"]) <= 1_000 * int(got.headers["Retry-After"])


async def test_what_can_never_be_served_is_413_without_a_time_to_come_back() -> None:
    never: dict[str, dict[str, Any]] = {
        "context_limit": {"inputs": "word " * 9_000, "parameters": {"max_new_tokens": 2}},
        "lane_limit": {"inputs": "Hello", "parameters": {"max_new_tokens": 8_000}},
        "output_limit": {"inputs": "Hello", "parameters": {"max_new_tokens": 8_100}},
    }
    long = b'{"inputs":"' + b"x" * 2_000_000 + b'"}'
    async with small_house("[lanes.bulk]\nmax_output_tokens = 8_050\n") as gate:
        for reason, body in never.items():
            assert_refused(await gate.post("/generate", body), 413, reason)
        too_large = await gate.ask("POST", "/generate", data=io.BytesIO(long), headers=JSON)
        assert_refused(too_large, 413, "body_too_large")


async def test_what_is_only_busy_is_429_with_a_time_to_come_back() -> None:
    async with small_house(NO_QUEUE) as gate, held(gate):
        assert_refused(await gate.post("/v1/chat/completions", CHAT), 429, "token_budget_exhausted")
    async with small_house(NO_QUEUE, "max_concurrent_sequences = 1\n") as gate, held(gate):
        assert_refused(await gate.post("/v1/chat/completions", CHAT), 429, "concurrency_limit")
    async with small_house(f"{PATIENT}queue_requests = 1\n") as gate, held(gate):
        waits = asyncio.ensure_future(gate.post("/generate", SMALL))
        await until_waiting(gate, 1)
        assert_refused(await gate.post("/v1/chat/completions", CHAT), 429, "queue_full")
        waits.cancel()
    async with small_house(BRIEF, "max_concurrent_sequences = 1\n") as gate, stuck(gate, 1):
        assert_refused(await gate.post("/v1/chat/completions", CHAT), 429, "queue_timeout")


async def test_only_a_gateway_without_anybody_behind_it_is_503() -> None:
    async with house() as gate:
        await gate.replicas[0].stop()
        assert (await gate.post("/generate", SMALL)).status in {502, 503}, "the first to find out"
        states = gate.daemon.gateway.driver.state
        await until(lambda: not any(replica.up for replica in states().replicas))
        for path, body in (("/generate", SMALL), ("/v1/chat/completions", CHAT)):
            assert_refused(await gate.post(path, body), 503, "no_replica")
    async with house() as gate:
        gate.daemon.gateway.begin_draining()
        assert_refused(await gate.post("/generate", SMALL), 503, "draining")
