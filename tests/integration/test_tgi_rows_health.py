"""What TGI tells of itself: `/health`, `/info`, `/v1/models`, `/tokenize` and `/chat_tokenize`, whole and in bytes.

Each row's id is a version or a sentence of the router's source.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from fakes.simulated import Answer, Site, simulated
from llmshed.emulator.faults import FaultPlan
from llmshed.simulation.cost import StepTimes

HI = [{"role": "user", "content": "Hello"}]
UNHEALTHY = b'{"error":"unhealthy","error_type":"healthcheck"}'
HEALTH = ("/", "/health", "/ping")
LONG = {"inputs": "Hello", "parameters": {"max_new_tokens": 5000}}


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with simulated() as running:
        yield running


# --- health


@pytest.mark.parametrize("path", HEALTH)
async def test_a_sound_replica_answers_with_an_empty_200(site: Site, path: str) -> None:
    answer = await site.get(path)
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize("path", HEALTH)
async def test_one_whose_shards_do_not_answer_is_a_503_until_they_do(path: str) -> None:
    async with simulated(faults=FaultPlan(unhealthy=True, times=0)) as site:
        ill = [await site.get(path) for _ in range(2)]
        # Health is no gate: what comes meanwhile is answered.
        served = await site.post("/generate", {"inputs": "x", "parameters": {"max_new_tokens": 1}})
        await site.post("/_simulate/faults", {})
        well = await site.get(path)
    for answer in ill:
        assert (answer.status, answer.body, answer.headers["content-type"]) == (503, UNHEALTHY, "application/json")
    assert served.status == 200
    assert (well.status, well.body) == (200, b"")


async def test_health_is_blind_to_load() -> None:
    async with (
        simulated({"max_concurrent_requests": 1}) as site,
        site.session.post(f"{site.url}/generate_stream", json=LONG) as response,
    ):
        await response.content.readline()
        refused = await site.post("/generate", {"inputs": "x"})
        healthy = await site.get("/health")
        response.close()
    assert (refused.status, healthy.status) == (429, 200)


async def test_health_waits_behind_the_step_that_runs(site: Site) -> None:
    """The shards answer between two steps, so that a long one looks like death to a short timeout."""
    async with site.session.post(f"{site.url}/generate_stream", json=LONG) as response:
        await response.content.readline()
        await site.post("/_simulate/faults", {"stall_seconds": "forever"})
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(site.get("/health"))
            # All else is answered meanwhile, by the router alone.
            assert (await site.get("/info")).status == 200
            assert not asked.done()
            await site.post("/_simulate/faults", {"stall_seconds": 0})
            assert (await asked).status == 200
        response.close()


async def test_after_a_failed_generation_health_is_a_generation_of_one_token() -> None:
    async with simulated({"step_times": StepTimes(0.05, 0, 0)}) as site:
        clock = asyncio.get_running_loop()

        async def asked() -> float:
            began = clock.time()
            assert (await site.get("/health")).status == 200
            return clock.time() - began

        await site.post("/_simulate/faults", {"fail_batch": True})
        assert (await site.post("/generate", {"inputs": "x"})).status == 424
        thorough = await asked()
        engine = site.emulator.replica.engine
        assert thorough >= 0.05
        assert engine.is_sound
        # A failure that nobody was told of changes nothing.
        await site.post("/_simulate/faults", {"fail_batch": True})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await site.post("/generate", {"inputs": "x"})
        async with asyncio.timeout(30):
            while (await site.state())["sequences"]:  # noqa: ASYNC110 - the state is on the other side of a socket
                await asyncio.sleep(0.005)
        assert engine.is_sound


async def test_before_the_warm_up_and_during_a_drain_connections_are_refused() -> None:
    async with simulated({"step_times": StepTimes(0.02, 0, 0)}, drain_seconds=10.0) as site:
        short = {"inputs": "Hello", "parameters": {"max_new_tokens": 20}}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{site.url}/generate_stream", json=short) as running,
        ):
            await running.content.readline()
            async with asyncio.TaskGroup() as group:
                group.create_task(site.emulator.stop())
                rest = await running.read()
                async with aiohttp.ClientSession() as late:
                    with pytest.raises(aiohttp.ClientConnectorError):
                        await late.get(f"{site.url}/health")
    assert b'"index":20,' in rest


# --- info


SHARED = {"max_input_tokens": 4000, "max_total_tokens": 5000, "kv_tokens": 50_000, "max_batch_prefill_tokens": 8192}
INFO = {
    "3.3.5": (
        b'{"model_id":"llmshed/simulated","model_sha":null,"model_pipeline_tag":null,"max_concurrent_requests":128,'
        b'"max_best_of":2,"max_stop_sequences":4,"max_input_tokens":4000,"max_total_tokens":5000,"validation_workers":2,'
        b'"max_client_batch_size":4,"router":"text-generation-router","version":"3.3.5","sha":null,"docker_label":null}'
    ),
    "3.0.1": (
        b'{"model_id":"llmshed/simulated","model_sha":null,"model_pipeline_tag":null,"max_concurrent_requests":128,'
        b'"max_best_of":2,"max_stop_sequences":4,"max_input_tokens":4000,"max_total_tokens":5000,"validation_workers":2,'
        b'"max_client_batch_size":4,"router":"text-generation-router","version":"3.0.1","sha":null,"docker_label":null}'
    ),
    "2.4.0": (
        b'{"model_id":"llmshed/simulated","model_sha":null,"model_pipeline_tag":null,"max_concurrent_requests":128,'
        b'"max_best_of":2,"max_stop_sequences":4,"max_input_tokens":4000,"max_total_tokens":5000,"validation_workers":2,'
        b'"max_client_batch_size":4,"router":"text-generation-router","version":"2.4.0","sha":null,"docker_label":null}'
    ),
    "1.4.5": (
        b'{"model_id":"llmshed/simulated","model_sha":null,"model_dtype":"torch.float16","model_device_type":"cuda",'
        b'"model_pipeline_tag":null,"max_concurrent_requests":128,"max_best_of":2,"max_stop_sequences":4,'
        b'"max_input_length":4000,"max_total_tokens":5000,"waiting_served_ratio":1.2,"max_batch_total_tokens":50000,'
        b'"max_waiting_tokens":20,"max_batch_size":null,"validation_workers":2,"version":"1.4.5","sha":null,'
        b'"docker_label":null}'
    ),
}


@pytest.mark.parametrize(("version", "expected"), INFO.items(), ids=INFO)
async def test_info_is_told_field_for_field(version: str, expected: bytes) -> None:
    async with simulated({**SHARED, "version": version}) as site:
        answer = await site.get("/info")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.body == expected


async def test_the_limits_of_info_are_those_of_the_replica() -> None:
    changes = {"max_concurrent_requests": 7, "max_best_of": 3, "max_stop_sequences": 5, "max_client_batch_size": 6}
    async with simulated(changes, model_id="org/model") as site:
        told = (await site.get("/info")).json
    assert {name: told[name] for name in changes} == changes
    assert told["model_id"] == "org/model"


async def test_models_are_listed_as_one_that_owns_itself(site: Site) -> None:
    answer = await site.get("/v1/models")
    assert answer.body == (
        b'{"object":"list","data":[{"id":"llmshed/simulated","object":"model","created":0,"owned_by":"llmshed/simulated"}]}'
    )


# --- counting


async def tokens(site: Site, inputs: str, **parameters: Any) -> Answer:
    return await site.post("/tokenize", {"inputs": inputs, "parameters": parameters})


@pytest.mark.parametrize("text", ["a b c", "grün ist schön", "日本語のテキスト", "🙂 end", "", " lead and trail "])
async def test_tokens_are_told_with_their_bytes(site: Site, text: str) -> None:
    told = (await tokens(site, text)).json
    data = text.encode()
    for token in told:
        assert list(token) == ["id", "text", "start", "stop"]
        assert token["text"] == data[token["start"] : token["stop"]].decode(errors="replace")
    assert [token["stop"] for token in told][-1:] == ([len(data)] if text else [])


async def test_counting_has_no_limits_takes_no_permit_and_cuts_nothing() -> None:
    async with simulated({"max_concurrent_requests": 1, "max_input_tokens": 10, "max_total_tokens": 2000}) as site:
        body = {"inputs": "Hello", "parameters": {"max_new_tokens": 1500}}
        async with site.session.post(f"{site.url}/generate_stream", json=body) as response:
            await response.content.readline()
            whole = await tokens(site, "word " * 100)
            cut = await tokens(site, "word " * 100, truncate=3, max_new_tokens=0, best_of=9)
            chat = await site.post("/chat_tokenize", {"messages": [{"role": "user", "content": "word " * 100}]})
            response.close()
    assert len(whole.json) > 100
    assert cut.body == whole.body
    assert len(chat.json["tokenize_response"]) > 100


async def test_chat_tokenize_is_the_template_and_its_tokens(site: Site) -> None:
    answer = (await site.post("/chat_tokenize", {"messages": HI})).json
    assert list(answer) == ["tokenize_response", "templated_text"]
    text = answer["templated_text"]
    assert "".join(token["text"] for token in answer["tokenize_response"]) == text
    usage = (await site.post("/v1/chat/completions", {"messages": HI, "max_tokens": 1})).json["usage"]
    assert usage["prompt_tokens"] == len(answer["tokenize_response"])


async def test_chat_tokenize_counts_tools_as_a_chat_does(site: Site) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    plain = (await site.post("/chat_tokenize", {"messages": HI})).json
    both = {"messages": HI, "tools": [tool], "tool_choice": "required"}
    answer = (await site.post("/chat_tokenize", both)).json
    usage = (await site.post("/v1/chat/completions", {**both, "max_tokens": 100})).json["usage"]
    assert usage["prompt_tokens"] == len(answer["tokenize_response"]) > len(plain["tokenize_response"])
    assert '"name":"f"' in answer["templated_text"].replace(": ", ":")
