"""Every route of both listeners, as a client and an operator meet it."""

import asyncio
import re
from collections.abc import AsyncIterator

import aiohttp
import pytest

from fakes.house import House, house, until
from llmshed.gateway.admin.routes import ADMIN_ROUTES
from llmshed.gateway.door.routes import DATA_ROUTES

CHAT = {"model": "tgi", "messages": [{"role": "user", "content": "Hello there"}], "max_tokens": 4}
NATIVE = {"inputs": "Hello there", "parameters": {"max_new_tokens": 4, "details": True}}


@pytest.fixture
async def gate() -> AsyncIterator[House]:
    async with house() as running:
        yield running


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/", NATIVE),
        ("/generate", NATIVE),
        ("/v1/chat/completions", CHAT),
        ("/v1/completions", {"model": "tgi", "prompt": "Hello there", "max_tokens": 4}),
    ],
)
async def test_whole_answers_are_the_replicas_own(gate: House, path: str, body: dict[str, object]) -> None:
    got = await gate.post(path, body)
    assert got.status == 200
    answer = got.json()[0] if path == "/" else got.json()
    told = answer["usage"]["completion_tokens"] if "usage" in answer else answer["details"]["generated_tokens"]
    assert told == 4
    assert got.headers["x-llmshed-lane"] == "interactive"
    assert got.headers["x-llmshed-output-ceiling"] == "4"
    assert got.headers["x-llmshed-replica"] == "r1"
    assert got.headers["x-llmshed-profile"] == "uncalibrated"
    assert int(got.headers["x-llmshed-reserved-tokens"]) == int(got.headers["x-llmshed-input-tokens"]) + 4
    assert "total;dur=" in got.headers["server-timing"]
    line = await gate.decision()
    assert (line["ending"], line["termination"], line["status"], line["output_tokens"]) == ("finished", "--", 200, 4)
    assert line["request_id"] == got.headers["x-request-id"] == got.headers["request-id"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/", {**NATIVE, "stream": True}),
        ("/generate_stream", NATIVE),
        ("/v1/chat/completions", {**CHAT, "stream": True}),
        ("/v1/completions", {"prompt": "Hello there", "max_tokens": 4, "stream": True}),
    ],
)
async def test_streams_are_the_replicas_byte_for_byte(gate: House, path: str, body: dict[str, object]) -> None:
    async with gate.session.post(gate.urls[0] + path, json=body) as response:
        theirs = await response.read()
    ours = await gate.post(path, body)
    assert (ours.status, ours.headers["Content-Type"]) == (200, "text/event-stream")
    assert _without_clock(ours.body) == _without_clock(theirs)
    assert ours.headers["x-accel-buffering"] == "no"


def _without_clock(stream: bytes) -> bytes:
    return re.sub(rb'"created":\d+', b'"created":0', stream)


async def test_a_ceiling_that_is_not_named_is_written_on_the_wire_and_told(gate: House) -> None:
    got = await gate.post("/generate", {"inputs": "Hello", "parameters": {"details": True}})
    assert got.headers["x-llmshed-output-ceiling"] == "512"
    assert got.json()["details"]["generated_tokens"] == 512


async def test_counting_routes_have_tgis_shapes(gate: House) -> None:
    tokens = (await gate.post("/tokenize", {"inputs": "Héllo there"})).json()
    assert [set(token) for token in tokens] == [{"id", "text", "start", "stop"}] * len(tokens)
    assert tokens[-1]["stop"] == len("Héllo there".encode())
    chat = (await gate.post("/chat_tokenize", CHAT)).json()
    served = await gate.post("/v1/chat/completions", CHAT)
    assert len(chat["tokenize_response"]) == int(served.headers["x-llmshed-input-tokens"])
    assert "Hello there" in chat["templated_text"]
    assert served.json()["usage"]["prompt_tokens"] == len(chat["tokenize_response"])


async def test_what_is_served_is_described(gate: House) -> None:
    info = (await gate.ask("GET", "/info")).json()
    assert (info["model_id"], info["max_total_tokens"], info["router"]) == ("llmshed/simulated", 8192, "llmshed")
    models = (await gate.ask("GET", "/v1/models")).json()
    assert [model["id"] for model in models["data"]] == ["llmshed/simulated"]
    limits = (await gate.ask("GET", "/v1/llmshed/limits")).json()
    assert limits["calibrated"] is False
    assert limits["lanes"]["interactive"]["max_input_tokens"] == 4096
    assert limits["pools"][0]["lanes"]["bulk"]["max_input_tokens"] == 8191
    assert limits["admin"] == gate.admin
    for path in ("/health", "/"):
        got = await gate.ask("GET", path)
        assert (got.status, got.body) == (200, b"")
    assert (await gate.ask("HEAD", "/info")).status == 200


async def test_limits_and_refusals_tell_the_same_numbers(gate: House) -> None:
    limits = (await gate.ask("GET", "/v1/llmshed/limits")).json()["pools"][0]["lanes"]["bulk"]
    refused = await gate.post("/generate", {"inputs": "word " * 9000, "parameters": {"max_new_tokens": 5}})
    assert (refused.status, refused.reason) == (413, "context_limit")
    told = refused.json()["limits"]
    assert told == {name: limits[name] for name in told}


@pytest.mark.parametrize("path", ["/nothing", "/metrics", "/admin/state", "/health/", "//health", "/v1%2Fmodels"])
async def test_everything_else_is_a_json_404(gate: House, path: str) -> None:
    got = await gate.ask("GET", path)
    assert (got.status, got.reason) == (404, "not_found")
    assert got.json()["code"] == "not_found"
    assert got.headers["x-should-retry"] == "false"


async def test_an_unknown_openai_route_is_told_in_its_dialect(gate: House) -> None:
    assert (await gate.post("/v1/embeddings", {})).json()["error"]["code"] == "not_found"


async def test_methods_are_told_and_kept(gate: House) -> None:
    for path, route in DATA_ROUTES.items():
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "TRACE"):
            if method in route.methods:
                continue
            got = await gate.ask(method, path)
            assert (got.status, got.reason) == (405, "method_not_allowed")
            assert got.headers["Allow"] == ", ".join(route.methods)
        allowed = await gate.ask("OPTIONS", path)
        assert (allowed.status, allowed.headers["Allow"]) == (204, ", ".join(route.methods))


async def test_the_two_listeners_share_no_route(gate: House) -> None:
    for method, path in ADMIN_ROUTES:
        assert (await gate.ask(method, path)).status == 404
    for path in set(DATA_ROUTES):
        assert (await gate.ask("GET", path, admin=True)).status == 404


async def test_an_operator_sees_health_state_metrics_and_decisions(gate: House) -> None:
    await gate.post("/generate", NATIVE)
    assert (await gate.ask("GET", "/livez", admin=True)).status == 200
    assert (await gate.ask("GET", "/readyz", admin=True)).body == b"ok\n"
    assert (await gate.ask("GET", "/readyz?verbose", admin=True)).json()["checks"]["replica_up"] is True
    state = (await gate.ask("GET", "/admin/state", admin=True)).json()
    assert state["replicas"][0]["equation"]["headroom_tokens"] == 8192
    metrics = (await gate.ask("GET", "/metrics", admin=True)).body.decode()
    assert 'llmshed_requests_total{decision="admit",lane="interactive",reason="none"} 1.0' in metrics
    decisions = (await gate.ask("GET", "/admin/decisions?n=1", admin=True)).json()["decisions"]
    assert [line["route"] for line in decisions] == ["/generate"]
    wanted = decisions[0]["request_id"]
    found = (await gate.ask("GET", f"/admin/decisions?request_id={wanted}", admin=True)).json()["decisions"]
    assert found == decisions
    assert (await gate.ask("GET", "/admin/decisions?request_id=none", admin=True)).json()["decisions"] == []


@pytest.mark.parametrize("n", ["0", "-1", "x", "1.5", ""])
async def test_a_number_of_decisions_is_never_guessed(gate: House, n: str) -> None:
    got = await gate.ask("GET", f"/admin/decisions?n={n}", admin=True)
    assert (got.status, got.reason) == (400, "malformed")


async def test_admin_errors_are_json_too(gate: House) -> None:
    assert (await gate.ask("GET", "/admin/none", admin=True)).json()["code"] == "not_found"
    wrong = await gate.ask("DELETE", "/admin/reload", admin=True)
    assert (wrong.status, wrong.headers["Allow"]) == (405, "POST")


async def test_classify_says_what_a_request_would_meet_and_charges_nothing(gate: House) -> None:
    stated = await gate.ask("POST", "/admin/classify", admin=True, json={"input_tokens": 4000, "max_output": 100})
    report = stated.json()
    assert (report["verdict"], report["reservation_tokens"], report["lane"]) == ("admit", 4100, "interactive")
    assert report["equation"]["headroom_tokens"] == 8192
    assert (report["fits"], report["status"], report["reason"]) == (True, 200, None)
    counted = await gate.ask(
        "POST", "/admin/classify", admin=True, json={"route": "/v1/chat/completions", "body": CHAT, "class": "low"}
    )
    served = await gate.post("/v1/chat/completions", CHAT)
    assert counted.json()["input_tokens"] == int(served.headers["x-llmshed-input-tokens"])
    assert counted.json()["priority_class"] == "low"
    too_long = await gate.ask("POST", "/admin/classify", admin=True, json={"input_tokens": 200_000})
    assert (too_long.json()["status"], too_long.json()["reason"]) == (413, "context_limit")
    assert gate.active_tokens() == 0


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ({}, "input_tokens"),
        ({"input_tokens": -1}, "input_tokens"),
        ({"input_tokens": True}, "input_tokens"),
        ({"input_tokens": 1, "body": {}}, "input_tokens"),
        ({"body": {"inputs": "x"}}, "route"),
        ({"route": "/tokenize", "body": {"inputs": "x"}}, "route"),
        ({"route": "/generate", "body": []}, "body"),
        ({"route": "/generate", "body": {"inputs": 3}}, "inputs"),
        ({"input_tokens": 1, "intent": "urgent"}, "intent"),
        ({"input_tokens": 1, "class": ["high"]}, "class"),
        ({"input_tokens": 1, "tenant": "nobody"}, "tenant"),
        ({"input_tokens": 1, "max_output": 0}, "max_output"),
        ({"input_tokens": 1, "tokens": 4}, "tokens"),
    ],
)
async def test_a_question_that_cannot_be_meant_is_refused_by_name(
    gate: House, question: dict[str, object], named: str
) -> None:
    got = await gate.ask("POST", "/admin/classify", admin=True, json=question)
    assert (got.status, got.reason) == (400, "malformed")
    assert got.json()["param"] == named


async def test_a_truncated_prompt_tells_both_of_its_counts_over_all_sequences() -> None:
    text = "one two three four five six"
    asked = {"truncate": 2, "best_of": 2, "do_sample": True, "max_new_tokens": 4}
    async with house(pool="allow_truncate = true") as gate:
        whole = len((await gate.post("/tokenize", {"inputs": text})).json())
        got = await gate.post("/generate", {"inputs": text, "parameters": asked})
    assert got.status == 200
    assert whole > 2
    assert got.headers["x-llmshed-input-tokens"] == "4"
    assert got.headers["x-llmshed-untruncated-tokens"] == str(2 * whole)
    assert got.headers["x-llmshed-reserved-tokens"] == "12"


async def test_while_no_replica_has_come_up_the_gateway_is_starting() -> None:
    async with house(
        "", replicas=(), pool='replicas = [{ name = "gone", url = "http://127.0.0.1:9" }]', ready=False
    ) as gate:
        got = await gate.post("/generate", NATIVE)
        assert (got.status, got.reason) == (503, "starting")
        assert int(got.headers["Retry-After"]) >= 1
        assert (await gate.ask("GET", "/health")).status == 503
        ready = await gate.ask("GET", "/readyz", admin=True)
        assert (ready.status, ready.body) == (503, b"not ready: replica_up\n")
        assert (await gate.ask("GET", "/livez", admin=True)).status == 200


async def test_a_tokenizer_that_cannot_be_used_is_told_as_such_and_not_as_a_start() -> None:
    async with house(pool='tokenizer = "/nowhere"\nmodel = "m"', ready=False) as gate:
        await until(lambda: gate.daemon.gateway.fleet.troubles)
        got = await gate.post("/generate", NATIVE)
        assert (got.status, got.reason) == (503, "tokenizer_unavailable")
        assert "Retry-After" in got.headers
        assert b"nowhere" not in got.body
        assert (await gate.ask("GET", "/health")).reason == "tokenizer_unavailable"
        told = (await gate.ask("GET", "/admin/state", admin=True)).json()["troubles"]
        assert "/nowhere" in told["r1"]


async def test_a_pool_without_its_tokenizer_leaves_the_work_of_its_model_to_the_other() -> None:
    broken = '[[pools]]\nname = "broken"\nmodel = "m"\ntokenizer = "/nowhere"\n'
    replica = 'replicas = [{ name = "b", url = "simulated:" }]'
    async with house(broken + replica, pool='name = "whole"\nmodel = "m"') as gate:
        await until(lambda: "b" in gate.daemon.gateway.fleet.troubles)
        assert (await gate.post("/generate", NATIVE)).status == 200
        assert (await gate.post("/v1/chat/completions", CHAT | {"model": "m"})).status == 200


async def test_a_lost_replica_is_told_as_no_replica(gate: House) -> None:
    await gate.replicas[0].stop()
    first = await gate.post("/generate", NATIVE)
    assert first.status in {502, 503}

    async def told() -> str | None:
        return (await gate.post("/generate", NATIVE)).reason

    async with asyncio.timeout(30):
        while await told() != "no_replica":  # noqa: ASYNC110 - what is waited for is the next probe
            await asyncio.sleep(0.05)
    assert (await gate.ask("GET", "/readyz", admin=True)).status == 503


async def test_a_hundred_requests_under_one_client_id_are_all_served(gate: House) -> None:
    async def one() -> int:
        return (
            await gate.post("/generate", {"inputs": "x", "parameters": {"max_new_tokens": 2}}, {"x-request-id": "same"})
        ).status

    assert set(await asyncio.gather(*(one() for _ in range(100)))) == {200}
    assert {line["request_id"] for line in gate.decisions} == {"same"}


async def test_clients_that_keep_their_connection_are_served_on_it() -> None:
    async with house() as gate, aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:
        for _ in range(3):
            async with session.post(f"{gate.data}/generate", json=NATIVE) as response:
                assert response.status == 200
        connections = len([*session.connector._conns.values()]) if session.connector else 0
        assert connections == 1


async def test_a_refusal_before_a_body_that_has_arrived_keeps_the_connection() -> None:
    async with house() as gate, aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:
        statuses = []
        for path in ("/nowhere", "/nowhere", "/generate"):
            async with session.post(f"{gate.data}{path}", json=NATIVE) as response:
                assert "close" not in response.headers.get("connection", "")
                statuses.append(response.status)
        assert statuses == [404, 404, 200]
