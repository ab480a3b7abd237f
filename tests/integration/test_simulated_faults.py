"""Faults on demand, gone clients, drains, and what the replica tells of itself meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from fakes.quietest import quietest
from fakes.simulated import Answer, Site, simulated
from llmshed.clock import SystemClock
from llmshed.emulator import Emulator, EmulatorSettings
from llmshed.emulator.faults import FaultPlan
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters

SLOW = StepTimes(step_seconds=0.02)
PATIENCE_SECONDS = 10.0


def body(tokens: int = 50) -> dict[str, Any]:
    return {"inputs": "Hello", "parameters": {"max_new_tokens": tokens}}


async def order(site: Site, **faults: Any) -> Answer:
    return await site.post("/_simulate/faults", faults)


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something that comes within steps of the engine; a bound on a hang, not on its speed."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await holds():  # noqa: ASYNC110 - the state is on the other side of a socket
            await asyncio.sleep(0.005)


@asynccontextmanager
async def streaming(
    site: Site, path: str = "/generate_stream", **headers: str
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Open a long stream and wait for its first event; leave it by closing the connection."""
    fields = body(5000) if path == "/generate_stream" else {"prompt": "Hello", "max_tokens": 5000, "stream": True}
    async with aiohttp.ClientSession() as session:
        response = await session.post(site.url + path, json=fields, headers=headers)
        await response.content.readline()
        yield response
        response.close()


async def test_a_stream_dies_after_its_events() -> None:
    async with simulated() as site:
        await order(site, die_after_events=3, times=1)
        async with site.session.post(f"{site.url}/generate_stream", json=body()) as response:
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()
        whole = await site.post("/generate_stream", body(5))
        state = await site.state()
    assert len(whole.events) == 5
    assert state["kv_tokens_held"] == 0


async def test_a_request_dies_before_its_first_byte() -> None:
    async with simulated(faults=FaultPlan(die_after_events=0, times=2)) as site:
        for path in ("/generate", "/generate_stream"):
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await site.post(path, body())
        assert (await site.post("/generate", body(2))).status == 200


async def test_a_whole_answer_dies_after_its_tokens() -> None:
    async with simulated() as site:
        await order(site, die_after_events=3)
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await site.post("/generate", body())


async def test_a_stream_falls_silent_and_sends_comments() -> None:
    async with simulated(keep_alive_seconds=0.02, faults=FaultPlan(first_byte_delay_seconds=0.0)) as site:
        await order(site, stall_seconds="forever")
        async with site.session.post(f"{site.url}/generate_stream", json=body(1)) as response:
            assert response.status == 200
            assert [await response.content.readline() for _ in range(4)] == [b":\n", b"\n", b":\n", b"\n"]
            await order(site, stall_seconds=0)
            rest = await response.read()
    assert rest.removeprefix(b":\n\n").startswith(b'data: {"index":1')


async def test_one_stream_stalls_while_others_go_on() -> None:
    async with simulated() as site:
        await order(site, stall_after_events=1, times=1)
        async with site.session.post(f"{site.url}/generate_stream", json=body(30)) as stalled:
            await stalled.content.readline()
            assert (await site.post("/generate", body(5))).status == 200
            assert stalled.content.total_bytes < 400
            stalled.close()


async def test_a_failed_step_fails_the_whole_batch() -> None:
    async with simulated({"step_times": SLOW}) as site:
        async with streaming(site) as first:
            asyncio.get_running_loop().call_later(0.05, site.emulator.replica.engine.fail_batch, "CUDA out of memory")
            unary = await site.post("/generate", body(500))
            rest = await first.read()
        metrics = (await site.get("/metrics")).body.decode()
    text = "Request failed during generation: Server error: CUDA out of memory"
    expected = {"error": text, "error_type": "generation"}
    assert (unary.status, unary.json) == (424, expected)
    assert rest.endswith(b'data: {"error":"' + text.encode() + b'","error_type":"generation"}\n\n')
    assert '\ntgi_request_failure{err="generation"} 2\n' in metrics
    assert "\ntgi_batch_inference_failure" in metrics


async def test_a_stream_may_fail_its_batch_after_some_events() -> None:
    async with simulated() as site:
        await order(site, fail_after_events=3)
        answer = await site.post("/generate_stream", body(500))
    assert answer.events[-1]["error_type"] == "generation"
    assert 3 <= len(answer.events) - 1 < 500


async def test_an_order_to_fail_has_its_own_words() -> None:
    async with simulated({"step_times": SLOW}) as site, streaming(site) as stream:
        assert (await order(site, fail_batch="boom")).status == 200
        assert b"Request failed during generation: Server error: boom" in await stream.read()


async def test_an_overloaded_replica_refuses_with_a_status_or_inside_the_stream() -> None:
    async with simulated(faults=FaultPlan(overloaded=True)) as site:
        unary = await site.post("/generate", body())
        stream = await site.post("/generate_stream", body())
        chat = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
        openai = await site.post("/v1/chat/completions", chat)
        await order(site)
        cleared = await site.post("/generate", body(1))
    assert (unary.status, unary.json) == (429, {"error": "Model is overloaded", "error_type": "overloaded"})
    assert stream.body == b'data: {"error":"Model is overloaded","error_type":"overloaded"}\n\n'
    assert openai.body == (
        b'data: {"error":{"message":"Model is overloaded","http_status_code":422}}\n\ndata: [DONE]\n\n'
    )
    assert cleared.status == 200


async def test_permits_are_the_only_limit_and_come_back() -> None:
    async with simulated({"max_concurrent_requests": 2, "step_times": SLOW}) as site:
        async with streaming(site), streaming(site):
            assert (await site.post("/generate", body())).status == 429
            # Counting needs no permit.
            assert (await site.post("/tokenize", {"inputs": "x"})).status == 200
        await eventually(lambda: _idle(site))
        assert (await site.post("/generate", body(1))).status == 200


async def _idle(site: Site) -> bool:
    state = await site.state()
    return bool(state["permits_in_use"] == 0 and state["kv_tokens_held"] == 0)


async def test_the_first_byte_can_be_slow() -> None:
    async with simulated() as site:
        await order(site, first_byte_delay_seconds=3600)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await site.post("/generate_stream", body())
        await order(site)
        assert (await site.post("/generate", body(1))).status == 200


async def test_idle_connections_can_be_closed() -> None:
    async with simulated(faults=FaultPlan(idle_close_seconds=0.01)) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(site.url.rpartition(":")[2]))
        writer.write(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                answer = await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


async def test_connections_can_be_refused_for_a_while() -> None:
    async with simulated() as site:
        assert (await order(site, refuse_seconds=0.1)).status == 200
        async with aiohttp.ClientSession() as other:
            with pytest.raises(aiohttp.ClientConnectorError):
                await other.get(f"{site.url}/health")
            # What is open stays open.
            assert (await site.get("/health")).status == 200

            async def answers() -> bool:
                try:
                    async with other.get(f"{site.url}/health") as response:
                        return response.status == 200
                except aiohttp.ClientConnectorError:
                    return False

            await eventually(answers)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"{", "not JSON"),
        (b"[]", "an object is needed"),
        (b'{"dye": 1}', "unknown fault 'dye'; accepted are: die_after_events"),
        (b'{"times": -1}', "times: "),
    ],
)
async def test_a_wrong_order_changes_nothing(data: bytes, complaint: str) -> None:
    async with simulated(faults=FaultPlan(times=3)) as site:
        answer = await site.post("/_simulate/faults", data)
        plan = (await site.get("/_simulate/faults")).json
    assert answer.status == 400
    assert complaint in answer.json["error"]
    assert plan["times"] == 3


async def test_the_state_tells_each_sequence_with_the_caller_s_id() -> None:
    async with simulated({"step_times": SLOW}) as site, streaming(site, **{"x-request-id": "req_7"}):
        state = await site.state()
        (sequence,) = state["sequences"]
        metrics = (await site.get("/metrics")).body.decode()
    assert (sequence["request_id"], sequence["route"], sequence["phase"]) == ("req_7", "/generate_stream", "decode")
    # The input and the first chunk of the ceiling, less one.
    assert sequence["kv_tokens"] == sequence["input_tokens"] + 1024 - 1 == state["kv_tokens_held"]
    assert sequence["output_tokens"] >= 1
    assert (state["requests_live"], state["requests_received_total"]) == (1, 1)
    assert state["broken_invariants"] == []
    assert f"\ntgi_batch_current_max_tokens {state['kv_tokens_held']}\n" in metrics
    assert "\ntgi_batch_current_size 1\n" in metrics


@pytest.mark.parametrize("path", ["/generate_stream", "/v1/completions"])
async def test_a_gone_client_gives_back_its_permit_and_then_its_cache(path: str) -> None:
    async with simulated({"step_times": SLOW}) as site:
        async with streaming(site, path):
            assert (await site.state())["permits_in_use"] == 1
        await eventually(lambda: _idle(site))
        state = await site.state()
        metrics = (await site.get("/metrics")).body.decode()
    assert state["requests_cancelled_total"] == 1
    assert '\ntgi_request_failure{err="dropped"} 1\n' in metrics


async def test_a_client_that_leaves_while_waiting_stays_in_the_queue_until_it_is_in_front() -> None:
    small = {"kv_tokens": 9000, "step_times": SLOW, "version": "2.4.0", "max_batch_prefill_tokens": 8192}
    async with simulated(small) as site, streaming(site):
        ahead = asyncio.create_task(site.post("/generate", body(6000)))  # noqa: TID251 - cancelled below
        await eventually(lambda: _queued(site, 1))
        behind = asyncio.create_task(site.post("/generate", body(6000)))  # noqa: TID251 - cancelled below
        await eventually(lambda: _queued(site, 2))
        behind.cancel()
        await eventually(lambda: _permits(site, 2))
        state = await site.state()
        ahead.cancel()
    assert state["queue_size"] == 2
    assert [sequence["abandoned"] for sequence in state["sequences"]] == [False, False, True]


async def _queued(site: Site, number: int) -> bool:
    return bool((await site.state())["queue_size"] == number)


async def _permits(site: Site, number: int) -> bool:
    return bool((await site.state())["permits_in_use"] == number)


async def test_many_clients_that_leave_at_any_moment_leave_nothing_behind() -> None:
    async with simulated({"max_concurrent_requests": 64, "step_times": StepTimes(step_seconds=0.001)}) as site:

        async def hasty(patience: float) -> None:
            try:
                async with asyncio.timeout(patience):
                    await site.post("/generate_stream" if patience * 1e4 % 2 else "/generate", body(500))
            except TimeoutError:
                pass

        async with asyncio.TaskGroup() as clients:
            for number in range(120):
                clients.create_task(hasty(number / 2000))
        await eventually(lambda: _idle(site))
        state = await site.state()
    assert state["sequences"] == []
    assert state["requests_live"] == 0
    assert state["broken_invariants"] == []


async def test_a_stop_finishes_what_runs_and_takes_nothing_new() -> None:
    settings = EmulatorSettings(
        parameters=ReplicaParameters(step_times=SLOW), output_mean_tokens=None, drain_seconds=PATIENCE_SECONDS
    )
    emulator = Emulator(settings, SystemClock())
    url = await emulator.start()
    async with aiohttp.ClientSession() as session:
        response = await session.post(f"{url}/generate_stream", json=body(10))
        await response.content.readline()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(emulator.stop())
            rest = await response.read()
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.get(f"{url}/health")
    assert b'"index":10' in rest


async def test_a_hurried_stop_cuts_what_runs() -> None:
    settings = EmulatorSettings(
        parameters=ReplicaParameters(step_times=SLOW), output_mean_tokens=None, drain_seconds=3600
    )
    emulator = Emulator(settings)
    url = await emulator.start()
    async with aiohttp.ClientSession() as session:
        response = await session.post(f"{url}/generate_stream", json=body(5000))
        await response.content.readline()
        emulator.hurry()
        await emulator.stop()
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()
    await emulator.stop()


async def test_large_prompts_in_counting_do_not_hold_up_a_stream() -> None:
    # A wide bound on a blocked loop: counting one of these there by `encode` would hold it for over two seconds.
    assert await quietest(gap_while_counting, 0.4) < 0.4


async def gap_while_counting() -> float:
    """Have large prompts counted beside a stream and return the longest gap between two of its lines."""
    wide = {
        "max_input_tokens": 1_999_999,
        "max_total_tokens": 2_000_000,
        "max_batch_prefill_tokens": 4_000_000,
        "kv_tokens": 9_000_000,
        "step_times": StepTimes(0.01, 0, 0),
    }
    async with simulated(wide) as site, streaming(site) as stream:
        large = {"inputs": "queue " * 320_000, "parameters": {"max_new_tokens": 1}}
        gaps, clock = [0.0], SystemClock()
        async with asyncio.TaskGroup() as tasks:
            posts = [tasks.create_task(site.post("/generate", large)) for _ in range(3)]
            last = clock.now()
            while not all(post.done() for post in posts):
                await stream.content.readline()
                now = clock.now()
                gaps.append(now - last)
                last = now
    assert all(post.result().status == 200 for post in posts)
    return max(gaps)
