"""Keys, tenants and the admin token: default deny, and nobody gets more than his key allows."""

from pathlib import Path

import pytest

from fakes.engine import Conversation
from fakes.house import house
from fakes.talking_tgi import TalkingTgi
from fakes.tenants import bearer, digest_file, tenant
from llmshed.gateway.admin.routes import ADMIN_ROUTES

NATIVE = {"inputs": "Hello", "parameters": {"max_new_tokens": 2}}


@pytest.fixture
def two_tenants(tmp_path: Path) -> str:
    return tenant(tmp_path, "acme", 'priority_class = "normal"\nmax_concurrent_requests = 1') + tenant(
        tmp_path, "batch", 'intents = ["bulk"]\ndefault_intent = "bulk"\npriority_class = "low"'
    )


@pytest.mark.parametrize(
    "headers",
    [
        bearer("wrong"),
        bearer("acme-key "[:-1] + "x"),
        {"Authorization": "Basic YWNtZS1rZXk="},
        {"Authorization": "acme-key"},
        {"X-API-Key": "wrong"},
        {"Cookie": "key=acme-key"},
        {"Authorization": "Bearer acme-key, Bearer batch-key"},
    ],
)
async def test_a_wrong_key_is_no_key(two_tenants: str, headers: dict[str, str]) -> None:
    async with house(two_tenants) as gate:
        got = await gate.post("/v1/chat/completions", {}, headers)
        assert (got.status, got.json()["error"]["code"]) == (401, "unauthenticated")
        line = await gate.decision()
        assert (line["tenant"], line["termination"]) == (None, "GA")


async def test_a_key_may_come_in_either_header_and_its_tenant_is_written_down(two_tenants: str) -> None:
    async with house(two_tenants) as gate:
        for headers in (bearer("acme-key"), {"x-api-key": "acme-key"}):
            assert (await gate.post("/generate", NATIVE, headers)).status == 200
        assert {line["tenant"] for line in gate.decisions} == {"acme"}
        assert "acme-key" not in str(gate.decisions)


async def test_a_key_is_never_forwarded(two_tenants: str) -> None:
    async def talk(conversation: Conversation) -> None:
        await conversation.whole(b'{"generated_text":"x"}')

    async with TalkingTgi(talk) as engine:
        pool = f'replicas = [{{ name = "r1", url = "{engine.url}" }}]\ntokenizer = "embedded"'
        async with house(two_tenants, replicas=(), pool=pool) as gate:
            for headers in (bearer("acme-key"), {"x-api-key": "acme-key"}):
                assert (await gate.post("/generate", NATIVE, headers)).status == 200
        assert engine.asked_for("/generate") == 2
        assert "acme-key" not in str(engine.asked)


async def test_a_client_gets_the_class_and_intent_of_its_key_or_less(two_tenants: str) -> None:
    async with house(two_tenants) as gate:
        spoofs = {"Priority": "u=0", "X-Priority": "high", "x-gateway-inference-objective": "high"}
        for asked, got in (("high", "normal"), ("normal", "normal"), ("low", "low")):
            await gate.post("/generate", NATIVE, bearer("acme-key") | spoofs | {"x-llmshed-class": asked})
            assert gate.decisions[-1]["priority_class"] == got
        bulk = await gate.post("/generate", NATIVE, bearer("acme-key") | {"x-llmshed-intent": "bulk"})
        assert bulk.headers["x-llmshed-lane"] == "bulk"
        more = await gate.post("/generate", NATIVE, bearer("batch-key") | {"x-llmshed-intent": "interactive"})
        assert (more.status, more.reason) == (403, "forbidden")
        assert (await gate.post("/generate", NATIVE, bearer("batch-key"))).headers["x-llmshed-lane"] == "bulk"


async def test_a_tenants_quota_is_its_own(two_tenants: str) -> None:
    async with house(two_tenants) as gate:
        long = {"inputs": "Hello", "parameters": {"max_new_tokens": 400}}
        async with gate.session.post(f"{gate.data}/generate_stream", json=long, headers=bearer("acme-key")) as stream:
            await stream.content.readany()
            refused = await gate.post("/generate", NATIVE, bearer("acme-key"))
            assert (refused.status, refused.reason) == (429, "tenant_quota")
            assert int(refused.headers["Retry-After"]) >= 1
            assert (await gate.post("/generate", NATIVE, bearer("batch-key"))).status == 200
            assert (await gate.ask("GET", "/health")).status == 200


async def test_the_admin_listener_asks_for_its_token_on_every_route_but_the_probes(tmp_path: Path) -> None:
    token = digest_file(tmp_path / "token", "operator")
    async with house(f'[server]\nadmin_token_file = "{token}"\n') as gate:
        for path in ("/livez", "/readyz"):
            assert (await gate.ask("GET", path, admin=True)).status == 200
        closed = [(method, path) for method, path in ADMIN_ROUTES if path not in {"/livez", "/readyz"}]
        for method, path in (*closed, ("GET", "/none")):
            for headers in ({}, bearer("wrong"), bearer("acme-key")):
                got = await gate.ask(method, path, admin=True, headers=headers)
                assert (got.status, got.reason) == (401, "unauthenticated")
        assert (await gate.ask("GET", "/admin/state", admin=True, headers=bearer("operator"))).status == 200
        assert (await gate.ask("GET", "/none", admin=True, headers=bearer("operator"))).status == 404


async def test_classify_asks_for_a_tenant_when_there_are_several(two_tenants: str) -> None:
    async with house(two_tenants) as gate:
        unnamed = await gate.ask("POST", "/admin/classify", admin=True, json={"input_tokens": 5})
        assert (unnamed.status, unnamed.json()["param"]) == (400, "tenant")
        named = await gate.ask("POST", "/admin/classify", admin=True, json={"input_tokens": 5, "tenant": "batch"})
        assert (named.json()["lane"], named.json()["priority_class"]) == ("bulk", "low")
