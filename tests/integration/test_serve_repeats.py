"""Clients that come back: what of it is known, counted again, and written down."""

from collections.abc import Callable
from typing import Any

from fakes.counting_spy import CountingSpy
from fakes.house import JSON, House, house
from llmshed.admission.request import Request
from llmshed.admission.verdict import Verdict
from llmshed.gateway.ticket import Ticket

SEA = {"role": "user", "content": "Tell me of the sea."}
WET = {"role": "assistant", "content": "It is wet."}
SKY = {"role": "user", "content": "And of the sky?"}
SMALL_LANES = "lanes.bulk.max_input_tokens = 5\nlanes.interactive.max_input_tokens = 4"


async def chat(gate: House, *messages: dict[str, str], **headers: str) -> dict[str, Any]:
    """Have one turn and return its decision line."""
    body = {"messages": messages, "max_tokens": 2}
    await gate.post("/v1/chat/completions", body, {name.replace("_", "-"): text for name, text in headers.items()})
    return gate.decisions[-1]


async def test_a_second_turn_continues_the_first_and_nothing_else_does() -> None:
    async with house() as gate:
        assert (await chat(gate, SEA))["continuing"] is False
        assert (await chat(gate, SEA, WET, SKY))["continuing"] is True
        assert (await chat(gate, SKY, WET, SEA))["continuing"] is False
        assert (await chat(gate, SEA, WET, SKY, x_llmshed_session="other"))["continuing"] is False
        streamed = {"messages": [SEA, WET, SKY], "max_tokens": 2, "stream": True}
        await gate.post("/v1/chat/completions", streamed)
        assert gate.decisions[-1]["continuing"] is True
        await gate.post("/generate", {"inputs": SEA["content"], "parameters": {"max_new_tokens": 2}})
        assert gate.decisions[-1]["continuing"] is False


async def test_a_turn_that_was_refused_is_continued_by_nobody() -> None:
    async with house(SMALL_LANES) as gate:
        assert (await chat(gate, SEA))["status"] == 413
        assert (await chat(gate, SEA, WET, SKY))["continuing"] is False


async def test_a_413_that_is_sent_again_is_refused_alike_without_a_count() -> None:
    asked = {"inputs": "Tell me of the sea.", "parameters": {"max_new_tokens": 2}}
    async with house(SMALL_LANES) as gate:
        spy = CountingSpy(gate)
        first = await gate.post("/generate", asked)
        again = await gate.post("/generate", asked)
        assert spy.calls == 1
        other = await gate.post("/generate", {**asked, "inputs": "Tell me of the sky."})
        assert spy.calls == 2
        page = (await gate.ask("GET", "/metrics", admin=True)).body.decode()
        lines = list(gate.decisions)
    assert first.status == again.status == other.status == 413
    told = [{k: v for k, v in got.json().items() if k not in {"request_id", "error"}} for got in (first, again)]
    assert told[0] == told[1]
    assert [line["arrival"] == "unchanged_413" for line in lines] == [False, True, False]
    assert lines[0]["input_tokens"] == lines[1]["input_tokens"] > 5
    assert lines[1]["counting_seconds"] is None
    assert 'llmshed_client_retries_total{kind="unchanged_413",lane="overflow"} 1.0' in page


async def test_a_413_by_the_bytes_alone_is_known_again_and_tells_no_count() -> None:
    asked = {"inputs": "sea " * 50_000, "parameters": {"max_new_tokens": 2}}
    async with house() as gate:
        spy = CountingSpy(gate)
        for _ in range(3):
            got = await gate.post("/generate", asked)
            assert got.status == 413
            assert "At least" in got.json()["error"]
        assert spy.calls == 1
        assert [line["arrival"] for line in gate.decisions] == ["first", "unchanged_413", "unchanged_413"]
        assert {line["input_tokens"] for line in gate.decisions} == {None}


async def test_a_413_is_judged_anew_when_the_limits_change() -> None:
    asked = {"inputs": "Tell me of the sea.", "parameters": {"max_new_tokens": 2}}
    async with house(SMALL_LANES) as gate:
        assert (await gate.post("/generate", asked)).status == 413
        gate.toml = ""
        await gate.ask("POST", "/admin/reload", admin=True)
        assert (await gate.post("/generate", asked)).status == 200
        assert gate.decisions[-1]["arrival"] != "unchanged_413"


async def test_what_a_client_says_of_its_tries_reaches_the_core_with_the_name_of_its_request() -> None:
    asked = b'{"inputs": "Tell me of the sea.", "parameters": {"max_new_tokens": 2}}'
    async with house() as gate:
        seen = []
        admit = gate.daemon.gateway.driver.admit

        async def watched(request: Request, on_queued: Callable[[Verdict], None] | None = None) -> Ticket | Verdict:
            seen.append(request)
            return await admit(request, on_queued)

        gate.daemon.gateway.driver.admit = watched  # type: ignore[method-assign]  # the driver of one test
        for more in (
            {},
            {"x-stainless-retry-count": "2"},
            {"idempotency-key": '"k1"'},
            {"x-stainless-retry-count": "x"},
        ):
            await gate.ask("POST", "/generate", data=asked, headers=JSON | more)
        names = [request.fingerprint for request in seen]
        assert [request.declared_repeats for request in seen] == [0, 2, 0, 0]
        assert names[0] == names[1] == names[3] == gate.decisions[0]["fingerprint"]
        assert names[2] != names[0]


async def test_a_client_that_comes_before_its_time_is_early_and_told_no_longer_wait() -> None:
    filling = {"inputs": "Hello", "parameters": {"max_new_tokens": 7168}}  # some 14 seconds of the replica's time
    asked = {"inputs": "Hello", "parameters": {"max_new_tokens": 1024}}
    async with house("admission.retry_jitter_ratio = 0") as gate:
        async with gate.session.post(f"{gate.data}/generate_stream", json=filling) as stream:
            await stream.content.readany()
            refused = [await gate.post("/generate", asked) for _ in range(3)]
            page = (await gate.ask("GET", "/metrics", admin=True)).body.decode()
        lines = [line for line in gate.decisions if line["status"] == 429]
    assert [got.status for got in refused] == [429, 429, 429]
    assert [line["arrival"] for line in lines] == ["first", "early", "early"]
    waits = [int(got.headers["retry-after-ms"]) for got in refused]
    assert waits == sorted(waits, reverse=True)
    assert 'llmshed_client_retries_total{kind="early",lane="interactive"} 2.0' in page
    assert 'llmshed_first_arrivals_total{lane="interactive"} 1.0' in page, "what runs is counted when it ends"
