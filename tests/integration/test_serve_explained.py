"""What a running gateway tells of one decision and of its queues: to the client, in the log, to its operator."""

import asyncio
from typing import Any

import pytest

from fakes.house import House, house
from fakes.seats import SMALL, held, small_house, until_waiting

pytestmark = pytest.mark.slow

ID = {"x-request-id": "the-one.1"}


def timings(headers: Any) -> dict[str, float]:
    """Return what Server-Timing tells, in milliseconds."""
    parts = (part.strip().split(";dur=") for part in headers["Server-Timing"].split(","))
    return {name: float(milliseconds) for name, milliseconds in parts}


async def metric(gate: House, series: str) -> float:
    """Return the value of one series, absent ones as an error."""
    lines = (await gate.ask("GET", "/metrics", admin=True)).body.decode().splitlines()
    (value,) = [line.rpartition(" ")[2] for line in lines if line.rpartition(" ")[0] == series]
    return float(value)


async def test_a_stream_tells_when_its_first_token_came_and_a_whole_answer_its_total() -> None:
    async with house() as gate:
        stream, whole = await gate.post("/generate_stream", SMALL), await gate.post("/generate", SMALL)
        refused = await gate.post("/generate", {"inputs": "word " * 9_000})
        told = [timings(got.headers) for got in (stream, whole, refused)]
        assert [list(one) for one in told] == [["tok", "queue", "ttft"], ["tok", "queue", "total"], ["tok", "queue"]]
        assert told[0]["ttft"] >= told[0]["tok"] + told[0]["queue"]
        line = gate.decisions[0]
        assert abs(told[0]["ttft"] - 1000 * line["ttft_seconds"]) <= 0.051  # the header tells a tenth of a millisecond


async def test_a_failure_of_an_engine_tells_the_waits_before_it() -> None:
    async with house() as gate:
        await gate.session.post(f"{gate.urls[0]}/_simulate/faults", json={"overloaded": True, "times": 1})
        got = await gate.post("/generate", SMALL)
        line = gate.decisions[0]
    assert (got.status, line["ending"]) == (429, "failed")
    told = timings(got.headers)
    assert abs(told["tok"] - 1000 * line["counting_seconds"]) <= 0.051
    assert abs(told["queue"] - 1000 * line["queue_seconds"]) <= 0.051
    assert told["tok"] > 0.0


async def test_what_waits_is_shown_and_who_left_the_queue_stays_a_request_that_was_let_wait() -> None:
    async with small_house() as gate:
        async with held(gate):
            asked = asyncio.ensure_future(gate.post("/generate", SMALL, ID))
            await until_waiting(gate, 1)
            labels = 'lane="interactive",pool="main",priority_class="normal"'
            assert await metric(gate, f"llmshed_queue_depth{{{labels}}}") == 1
            assert await metric(gate, f"llmshed_queued_tokens{{{labels}}}") == 3
            assert await metric(gate, f"llmshed_queued_prefill_tokens{{{labels}}}") == 1
            assert await metric(gate, 'llmshed_queue_oldest_age_seconds{lane="interactive",pool="main"}') > 0
            state = (await gate.ask("GET", "/admin/state", admin=True)).json()
            (pool,) = state["pools"]
            (queue,) = [one for one in pool["queues"] if one["requests"]]
            assert (queue["lane"], queue["priority_class"], queue["tokens"]) == ("interactive", "normal", 3)
            assert state["replicas"][0]["window"]["inflight_tokens"] == 0
            asked.cancel()
            left = await gate.decision(lambda line: line["request_id"] == "the-one.1")
            assert (left["ending"], left["termination"], left["decision"], left["reason"]) == (
                "cancelled",
                "CQ",
                "queue",
                None,
            )
            assert (left["lane"], left["pool"], left["queue"]["requests"]) == ("interactive", "main", 0)
            assert left["estimated_queue_seconds"] == left["delay"]["wait_seconds"] > 0
            assert left["arrival"] == "first"
        where = 'decision="queue",lane="interactive",reason="none"'
        assert await metric(gate, f"llmshed_requests_total{{{where}}}") == 1
        assert await metric(gate, 'llmshed_queue_residence_seconds_count{lane="interactive",pool="main"}') == 1


async def test_a_displaced_request_is_evicted_and_one_that_was_served_shows_its_estimate_beside_its_wait() -> None:
    low = ID | {"x-llmshed-class": "low"}
    async with small_house(
        "[lanes.interactive]\nmax_output_tokens = 8000\nmax_residence_seconds = 3600\nqueue_requests = 1\n"
    ) as gate:
        async with held(gate):
            shed = asyncio.ensure_future(gate.post("/generate", SMALL, low))
            await until_waiting(gate, 1)
            higher = asyncio.ensure_future(gate.post("/generate", SMALL, ID))
            assert ((await shed).status, (await shed).reason) == (429, "shed_priority")
        assert (await higher).status == 200
        found = (await gate.ask("GET", "/admin/decisions/the-one.1", admin=True)).json()
        assert found["schema"] == "llmshed.decisions/1"
        served, evicted = found["decisions"]
        assert (evicted["ending"], evicted["decision"], evicted["reason"], evicted["termination"]) == (
            "evicted",
            "queue",
            "shed_priority",
            "GQ",
        )
        assert "higher class" in evicted["detail"]
        assert evicted["queue"]["most_requests"] == 1
        assert (served["ending"], served["decision"], served["priority_class"]) == ("finished", "admit", "normal")
        assert served["estimated_queue_seconds"] == served["delay"]["wait_seconds"] > 0
        assert served["queue_seconds"] > 0
        where = 'decision="queue",lane="interactive",reason="shed_priority"'
        assert await metric(gate, f"llmshed_requests_total{{{where}}}") == 1
        assert await metric(gate, 'llmshed_endings_total{ending="evicted",lane="interactive"}') == 1
        assert await metric(gate, 'llmshed_queue_residence_seconds_count{lane="interactive",pool="main"}') == 2


async def test_a_decision_is_found_by_the_id_that_its_client_was_told() -> None:
    async with house() as gate:
        got = await gate.post("/generate", SMALL)
        told = got.headers["x-request-id"]
        found = (await gate.ask("GET", f"/admin/decisions/{told}", admin=True)).json()["decisions"]
        assert found == gate.decisions
        assert found[0]["window"]["tokens_per_second"] is None
        for unknown in ("nobody", "", f"{told}/more", f"{told}%0A"):
            missed = await gate.ask("GET", f"/admin/decisions/{unknown}", admin=True)
            assert (missed.status, missed.json()["code"]) == (404, "not_found")
        wrong = await gate.ask("DELETE", f"/admin/decisions/{told}", admin=True)
        assert (wrong.status, wrong.headers["Allow"]) == (405, "GET")
