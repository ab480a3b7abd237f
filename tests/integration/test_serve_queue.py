"""Requests that wait in a running gateway: what becomes of each, and what its client and the log are told."""

import asyncio
from typing import Any

import pytest

from fakes.house import until
from fakes.seats import PATIENT, SMALL, error_of, held, small_house, stuck, until_waiting, waiting

CHAT = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}
TEXT = {"model": "tgi", "prompt": "Hello", "max_tokens": 2}
SEATS = 8
BRIEF = "[lanes.interactive]\nttft_objective_seconds = 1\nmax_residence_seconds = 1\n"

pytestmark = pytest.mark.slow

DIALECTS: list[tuple[str, dict[str, Any]]] = [
    ("/generate", SMALL),
    ("/generate_stream", SMALL),
    ("/v1/chat/completions", CHAT),
    ("/v1/chat/completions", {**CHAT, "stream": True}),
    ("/v1/completions", TEXT),
    ("/v1/completions", {**TEXT, "stream": True}),
]


def queue_ms(headers: Any) -> float:
    """Return what Server-Timing tells of the wait."""
    timings = dict(part.strip().split(";dur=") for part in headers["Server-Timing"].split(","))
    return float(timings["queue"])


async def test_who_waits_is_served_when_room_comes_free_and_told_how_long_it_waited() -> None:
    async with small_house() as gate:
        async with held(gate):
            asked = [asyncio.ensure_future(gate.post(path, body)) for path, body in DIALECTS]
            await until_waiting(gate, len(DIALECTS))
            await asyncio.sleep(0.1)
            assert not any(task.done() for task in asked)
        answers = await asyncio.gather(*asked)
        assert [got.status for got in answers] == [200] * len(DIALECTS)
        assert {got.headers["x-llmshed-replica"] for got in answers} == {"r1"}
        assert all(queue_ms(got.headers) >= 100 for got in answers)
        lines = [line for line in gate.decisions if line["output_ceiling_tokens"] == 2]
        assert [(line["ending"], line["termination"]) for line in lines] == [("finished", "--")] * len(DIALECTS)
        assert all(line["queue_seconds"] >= 0.1 for line in lines)
        assert all(line["total_seconds"] >= line["queue_seconds"] for line in lines)


async def test_who_waited_its_residence_is_answered_in_its_dialect() -> None:
    async with small_house(BRIEF, f"max_concurrent_sequences = {SEATS}\n") as gate:
        async with stuck(gate, SEATS):
            began = asyncio.get_running_loop().time()
            asked = [asyncio.ensure_future(gate.post(path, body)) for path, body in DIALECTS]
            await until_waiting(gate, len(DIALECTS))
            answers = await asyncio.gather(*asked)
            took = asyncio.get_running_loop().time() - began
            assert waiting(gate) == 0
        assert took >= 1.0
        assert [(got.status, got.reason) for got in answers] == [(429, "queue_timeout")] * len(DIALECTS)
        for got in answers:
            error = error_of(got)
            assert (error["code"], error["lane"]) == ("queue_timeout", "interactive")
            assert int(got.headers["Retry-After"]) >= 1
            assert 0 < int(got.headers["retry-after-ms"]) <= 1000 * int(got.headers["Retry-After"])
            assert error["retry_after_ms"] == int(got.headers["retry-after-ms"])
            assert got.headers["Content-Type"] == "application/json"
            assert queue_ms(got.headers) >= 1000
        native, chat = answers[0].json(), answers[2].json()["error"]
        assert (native["error_type"], chat["type"]) == ("overloaded", "rate_limit_error")
        lines = [line for line in gate.decisions if line["status"] == 429]
        assert [line["termination"] for line in lines] == ["GQ"] * len(DIALECTS)
        assert all(line["queue_seconds"] >= 1.0 for line in lines)


async def test_a_full_queue_refuses_at_once_and_a_higher_class_takes_the_place_of_a_lower_one() -> None:
    low = {"x-llmshed-class": "low"}
    async with small_house(f"{PATIENT}queue_requests = 2\n") as gate:
        async with held(gate):
            first = asyncio.ensure_future(gate.post("/generate", SMALL, low))
            await until_waiting(gate, 1)
            last = asyncio.ensure_future(gate.post("/generate", SMALL, low))
            await until_waiting(gate, 2)
            full = await gate.post("/v1/chat/completions", CHAT, low)
            assert (full.status, full.reason) == (429, "queue_full")
            assert int(full.headers["Retry-After"]) >= 1
            higher = asyncio.ensure_future(gate.post("/generate", SMALL))
            shed = await last
            assert (shed.status, shed.reason) == (429, "shed_priority")
            assert int(shed.headers["Retry-After"]) >= 1
            assert waiting(gate) == 2
        assert [(await first).status, (await higher).status] == [200, 200]
        served = [line["priority_class"] for line in gate.decisions if line["ending"] == "finished"]
        assert served == ["normal", "low"]
        assert gate.decisions[0]["termination"] == "GQ"


async def test_a_wait_that_would_outlast_the_requests_deadline_ends_when_that_is_certain() -> None:
    async with small_house(pool=f"max_concurrent_sequences = {SEATS}\n") as gate:
        async with stuck(gate, SEATS):
            began = asyncio.get_running_loop().time()
            eight = {"inputs": "Hello", "parameters": {"max_new_tokens": 8}}
            asked = asyncio.ensure_future(gate.post("/generate", eight, {"x-llmshed-deadline-ms": "1500"}))
            await until_waiting(gate, 1)
            late = await asked
            took = asyncio.get_running_loop().time() - began
            hopeless = await gate.post("/generate", SMALL, {"x-llmshed-deadline-ms": "150"})
        assert took < 1.5  # its eight tokens need time too, more than half of it
        for got in (late, hopeless):
            assert (got.status, got.reason) == (429, "deadline_infeasible")
            assert got.headers["x-should-retry"] == "false"
        assert [line["termination"][1] for line in gate.decisions[:2]] == ["Q", "Q"]
        assert gate.decisions[0]["queue_seconds"] > gate.decisions[1]["queue_seconds"]


async def test_prompts_ahead_that_need_longer_than_the_residence_are_told_as_a_full_window(tmp_path: Any) -> None:
    profile = tmp_path / "slow.toml"
    profile.write_text(SLOW_PREFILL)
    long = {"inputs": "word " * 1000, "parameters": {"max_new_tokens": 2}}
    async with small_house(BRIEF, f'profile = "{profile}"\n') as gate:
        asked = [asyncio.ensure_future(gate.post("/generate_stream", long))]
        await until(lambda: gate.active_tokens() > 0)
        refused = await gate.post("/generate", long)
        assert (refused.status, refused.reason) == (429, "prefill_window_full")
        assert int(refused.headers["Retry-After"]) >= 1
        assert [(await task).status for task in asked] == [200]


SLOW_PREFILL = """
schema = "llmshed.profile/1"
name = "slow-prefill"
version = "1"

[budget]
gross_ceiling_tokens = 300_000
hard_cap_sequences = 64
basis = "declared"

[limits]
max_total_tokens = 8192

[prefill]
safe_tokens_per_second = 500
inflight_tokens = 500
"""
