"""Observe mode at the door: answers as without a gateway, decisions as with one, and nothing else refused less."""

import asyncio
import hashlib
import io
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest

from fakes.front import Got
from fakes.house import QUICK, House, house, raw, request_bytes, until
from fakes.leavers import Leaver, leave_in_batches, nothing_left_behind, with_id
from fakes.texts import text_of_tokens
from llmshed.admission.request import Request
from llmshed.gateway.counting.pool import BacklogError, CountingPool
from llmshed.gateway.replicas.fleet import Fleet
from llmshed.observability.endings import Phase
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters

OBSERVE = '[admission]\nmode = "observe"\n'
NATIVE = {"inputs": "Hello there", "parameters": {"max_new_tokens": 4}}
UNTOLD = {"inputs": "Hello there"}
CHAT = {"model": "tgi", "messages": [{"role": "user", "content": "Hello"}]}
SLOW = replace(QUICK, parameters=ReplicaParameters(step_times=StepTimes(0.02, 1e-6, 0)))
"""A replica whose answers of two hundred tokens take four seconds: they end when their client leaves."""

CASES = [
    ("/generate", NATIVE),
    ("/generate", UNTOLD),
    ("/generate", {"inputs": "Hello there", "parameters": {"details": True, "decoder_input_details": True}}),
    ("/generate_stream", NATIVE),
    ("/generate_stream", UNTOLD),
    ("/", {**UNTOLD, "stream": False}),
    ("/v1/chat/completions", CHAT),
    ("/v1/chat/completions", {**CHAT, "max_completion_tokens": 5, "stream": True}),
    ("/v1/chat/completions", {**CHAT, "stream": True, "stream_options": {"include_usage": True}}),
    ("/v1/completions", {"model": "tgi", "prompt": "Once upon", "max_tokens": 6}),
    ("/v1/completions", {"model": "tgi", "prompt": "Once upon", "stream": True}),
]


def masked(got: Got) -> tuple[int, str, list[Any]]:
    """Return an answer without its ids and times."""
    kind = got.headers["Content-Type"]
    if kind.startswith("text/event-stream"):
        events = [line.removeprefix(b"data:").strip() for line in got.body.split(b"\n") if line.startswith(b"data:")]
        return (
            got.status,
            kind,
            [event if event == b"[DONE]" else _without_ids(orjson.loads(event)) for event in events],
        )
    return got.status, kind, [_without_ids(orjson.loads(got.body))]


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_ids(inner) for name, inner in value.items() if name not in {"id", "created", "seed"}}
    return [_without_ids(inner) for inner in value] if isinstance(value, list) else value


ROOMY = ReplicaParameters(step_times=StepTimes(0.1, 1e-6, 0), max_concurrent_requests=512, kv_tokens=400_000)
BRIEF = replace(QUICK, output_mean_tokens=12.0)


@pytest.mark.parametrize(("path", "body"), CASES)
async def test_an_answer_is_that_of_an_engine_without_a_gateway(path: str, body: dict[str, Any]) -> None:
    """One that named no output ceiling is not given one, though its lane has a default."""
    async with house(OBSERVE + "[lanes.interactive]\ndefault_output_tokens = 3\n", replicas=(BRIEF,)) as gate:
        through = await gate.post(path, body)
        async with gate.session.post(gate.urls[0] + path, json=body) as response:
            direct = Got(response.status, response.headers.copy(), await response.read())
    assert masked(through) == masked(direct)
    assert through.headers["x-llmshed-would"] == "admit"
    assert "x-llmshed-output-ceiling" not in through.headers


FULL = "gross_ceiling_tokens = 300\nmax_concurrent_sequences = 64"
"""Room for 270 tokens: for one request of 240."""


def sized(tokens: int) -> dict[str, Any]:
    return {"inputs": "Hello there", "parameters": {"max_new_tokens": tokens, "details": True}}


async def burst(gate: House, seed: int) -> dict[str, Got]:
    """Send requests for three times the budget, one after the other and before any ends; returns the answers by id."""
    drawn = random.Random(seed)  # noqa: S311 - sizes of requests
    asked: dict[str, asyncio.Task[Got]] = {}
    offered = 0
    gate.replicas[0].replica.engine.stall(float("inf"))
    while offered <= 3 * 1_800:
        tokens = drawn.randrange(50, 400)
        offered += tokens
        name = f"burst-{len(asked)}"
        asked[name] = asyncio.ensure_future(gate.post("/generate", sized(tokens), {"x-request-id": name}))
        await until(lambda: gate.daemon.gateway.driver.live + len(gate.decisions) == len(asked))
    gate.replicas[0].replica.engine.stall(0)
    return {name: await task for name, task in asked.items()}


SMALL = "gross_ceiling_tokens = 2_000\nmax_concurrent_sequences = 64"


def lane(queue_requests: int) -> str:
    """Return a lane in which only the number of the waiting is bounded."""
    bounds = f"queue_requests = {queue_requests}\nmax_residence_seconds = 600\nttft_objective_seconds = 600\n"
    return f"[lanes.interactive]\n{bounds}"


@pytest.mark.slow
@pytest.mark.parametrize("queue_requests", [0, 4])
async def test_a_burst_is_told_exactly_what_enforcing_refuses_and_is_answered_in_full(queue_requests: int) -> None:
    told: list[dict[str, str | None]] = []
    for mode in ("", OBSERVE):
        async with house(mode + lane(queue_requests), pool=SMALL) as gate:
            answers = await burst(gate, seed=1)
            if mode:
                assert {got.status for got in answers.values()} == {200}
                words = {name: got.headers["x-llmshed-would"] for name, got in answers.items()}
                told.append({name: word for name, word in words.items() if word not in {"admit", "queue"}})
                assert ("queue" in words.values()) is (queue_requests > 0)
            else:
                assert {got.status for got in answers.values()} == {200, 429}
                told.append({name: got.reason for name, got in answers.items() if got.status != 200})
    enforced, observed = told
    assert observed == enforced
    assert len(enforced) > 5


async def ended(gate: House, request_id: str) -> dict[str, Any]:
    return await gate.decision(lambda line: line["request_id"] == request_id)


@asynccontextmanager
async def running(gate: House, body: dict[str, Any]) -> AsyncIterator[None]:
    """Keep a request running inside, and break it off after."""
    name = f"running-{next(_NUMBERS)}"
    async with raw(gate) as (_, writer):
        writer.write(request_bytes("/generate_stream", body, f"x-request-id: {name}"))
        await until(lambda: any(v.request_id == name and v.relaying for v in gate.daemon.gateway._visits))
        yield


_NUMBERS = count()


async def scraped(gate: House) -> dict[str, float]:
    """Return the counts of requests, refusals and would-be refusals that are not 0."""
    text = (await gate.ask("GET", "/metrics", admin=True)).body.decode()
    wanted = ("llmshed_would_total", "llmshed_requests_total", "llmshed_endings_total", "llmshed_retry_after_seconds_c")
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if line.startswith(wanted))
    return {name: float(number) for name, number in pairs if float(number)}


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "told"), [(OBSERVE, [4, None]), ("", [4, 7])])
async def test_the_ceiling_on_the_wire_is_what_an_answer_is_expected_by(
    mode: str, told: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    ceilings: list[int | None] = []
    sent = Fleet.sent

    def spy(fleet: Fleet, replica: str, request: Request, output_ceiling_tokens: int | None) -> None:
        ceilings.append(output_ceiling_tokens)
        sent(fleet, replica, request, output_ceiling_tokens)

    monkeypatch.setattr(Fleet, "sent", spy)
    async with house(mode + "[lanes.interactive]\ndefault_output_tokens = 7\n", replicas=(BRIEF,)) as gate:
        for body in (NATIVE, UNTOLD):
            assert (await gate.post("/generate", body)).status == 200
    assert ceilings == told


async def test_a_request_without_room_is_served_and_charges_nothing() -> None:
    tenancy = "[lanes.interactive]\nqueue_requests = 1\n"
    async with house(OBSERVE + tenancy, replicas=(SLOW,), pool=FULL) as gate, running(gate, sized(240)):
        charged = gate.active_tokens()
        assert charged > 240
        async with running(gate, sized(239)), running(gate, sized(238)):
            got = await gate.post("/generate", sized(40))
            state = (await gate.ask("GET", "/admin/state", admin=True)).json()
            assert gate.active_tokens() == charged
        assert got.status == 200
        assert got.headers["x-llmshed-would"] in {"token_budget_exhausted", "queue_full"}
        assert (state["mode"], state["violations"]) == ("observe", [])
        assert state["uncharged_requests"] >= 2


REFUSED = [
    ("lane_limit", {"inputs": "Hello", "parameters": {"max_new_tokens": 400}}, FULL, 200),
    ("context_limit", {"inputs": text_of_tokens(9_000), "parameters": {"max_new_tokens": 1}}, "", 422),
]


@pytest.mark.parametrize(("reason", "body", "pool", "status"), REFUSED)
async def test_a_size_that_no_lane_takes_is_the_engines_to_judge(
    reason: str, body: dict[str, Any], pool: str, status: int
) -> None:
    async with house(OBSERVE, replicas=(BRIEF,), pool=pool) as gate:
        got = await gate.post("/generate", body, {"x-request-id": "large"})
        line = await ended(gate, "large")
        counts = await scraped(gate)
    assert (got.status, got.headers["x-llmshed-would"]) == (status, reason)
    assert (line["would"], line["would_reason"]) == ("refuse", reason)
    assert (line["decision"], line["status"]) == ("admit", status)
    assert not [name for name in counts if 'decision="refuse"' in name and "would" not in name]
    assert "x-llmshed-reserved-tokens" not in got.headers


async def test_prompts_that_cannot_be_counted_now_pass_uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise BacklogError("small", 10, 10, 3.0)

    async with house(OBSERVE, replicas=(BRIEF,)) as gate:
        monkeypatch.setattr(CountingPool, "count", full)
        for path, body in CASES[:7]:
            got = await gate.post(path, body, {"x-request-id": "uncounted"})
            assert (got.status, got.headers["x-llmshed-would"]) == (200, "counting_backlog")
            assert "x-llmshed-input-tokens" not in got.headers
        line = await ended(gate, "uncounted")
    assert (line["would_reason"], line["prompt_tokens"], line["reservation"]) == ("counting_backlog", [], None)


async def test_a_prompt_whose_bytes_prove_it_too_large_passes_uncounted() -> None:
    async with house(OBSERVE, pool="max_total_tokens = 64\nmax_concurrent_sequences = 8") as gate:
        got = await gate.post("/generate", {"inputs": "word " * 50_000}, {"x-request-id": "proved"})
        line = await ended(gate, "proved")
    assert (got.status, got.headers["x-llmshed-would"]) == (422, line["would_reason"])
    assert line["would_reason"] in {"context_limit", "lane_limit"}
    assert line["prompt_tokens"] == []


@asynccontextmanager
async def tenant_house(place: Path, settings: str, **changes: Any) -> AsyncIterator[House]:
    keys = place / "keys"
    keys.write_text(f"sha256:{hashlib.sha256(b'right').hexdigest()}\n")
    keys.chmod(0o600)
    async with house(f'{OBSERVE}[[tenants]]\nname = "acme"\nkeys_file = "{keys}"\n{settings}', **changes) as gate:
        yield gate


KEY = {"Authorization": "Bearer right"}


async def test_a_spent_quota_is_told_and_refuses_nobody(tmp_path: Path) -> None:
    async with (
        tenant_house(tmp_path, "max_concurrent_requests = 1\n", pool="release_grace_seconds = 0.02") as gate,
        raw(gate) as (_, first),
    ):
        first.write(request_bytes("/generate_stream", sized(900), "Authorization: Bearer right"))
        await until(lambda: gate.daemon.gateway.driver.charged)
        got = await gate.post("/generate", sized(2), KEY)
        assert (got.status, got.headers["x-llmshed-would"]) == (200, "tenant_quota")
        assert gate.daemon.gateway.driver.charged == 1


async def test_what_is_no_matter_of_room_is_refused_as_ever(tmp_path: Path) -> None:
    tenancy = 'intents = ["bulk"]\ndefault_intent = "bulk"\n'
    large = b"x" * 3_000_000
    async with tenant_house(tmp_path, tenancy + "[server]\nmax_body_bytes = 2_000_000\n") as gate:
        answers = {
            "unauthenticated": await gate.post("/generate", NATIVE),
            "malformed": await gate.post("/generate", [1], KEY),
            "unsupported_field": await gate.post("/generate", {**NATIVE, "surprise": 1}, KEY),
            "not_found": await gate.post("/nowhere", NATIVE, KEY),
            "forbidden": await gate.post("/generate", NATIVE, KEY | {"x-llmshed-intent": "interactive"}),
            "body_too_large": await gate.ask("POST", "/generate", data=io.BytesIO(large), headers=KEY),
        }
        gate.daemon.gateway.begin_draining()
        answers["draining"] = await gate.post("/generate", NATIVE, KEY)
    assert {reason: got.reason for reason, got in answers.items()} == {reason: reason for reason in answers}
    assert not [got for got in answers.values() if "x-llmshed-would" in got.headers]


async def test_its_own_deadline_ends_no_request_that_is_observed() -> None:
    async with house(OBSERVE, replicas=(SLOW,)) as gate:
        got = await gate.post("/generate", sized(4), {"x-llmshed-deadline-ms": "60"})
    assert got.status == 200


async def test_metrics_keep_would_be_refusals_apart() -> None:
    async with house(OBSERVE, replicas=(BRIEF,), pool=FULL) as gate:
        assert (await gate.post("/generate", sized(400))).status == 200
        assert (await gate.post("/generate", sized(2))).status == 200
        await until(lambda: len(gate.decisions) == 2)
        counts = await scraped(gate)
    lanes = {line["lane"] for line in gate.decisions}
    assert lanes == {"interactive"}
    assert counts == {
        'llmshed_would_total{decision="refuse",lane="interactive",reason="lane_limit"}': 1,
        'llmshed_would_total{decision="admit",lane="interactive",reason="none"}': 1,
        'llmshed_requests_total{decision="admit",lane="interactive",reason="none"}': 2,
        'llmshed_endings_total{ending="finished",lane="interactive"}': 2,
    }


@pytest.mark.slow
async def test_a_reload_switches_the_mode_for_new_requests_only() -> None:
    async with house(OBSERVE, replicas=(SLOW,), pool=FULL) as gate:
        async with running(gate, sized(240)), running(gate, sized(239)):
            gate.toml = ""
            assert (await gate.ask("POST", "/admin/reload", admin=True)).status == 200
            assert (await gate.post("/generate", sized(400))).status == 413
            assert gate.daemon.gateway.driver.live == 2
        await until(lambda: gate.active_tokens() == gate.daemon.gateway.driver.live == 0)
        got = await gate.post("/generate", sized(2))
        assert (got.status, "x-llmshed-would" in got.headers) == (200, False)
        async with running(gate, sized(238)):
            gate.toml = OBSERVE
            await gate.ask("POST", "/admin/reload", admin=True)
            async with running(gate, sized(237)):
                assert gate.daemon.gateway.driver.violations() == ()
                assert gate.daemon.gateway.driver.charged == 1


def in_phase(gate: House, phase: Phase) -> int:
    """Return how many requests are in a phase."""
    visits = gate.daemon.gateway._visits
    return sum((visit.relayed.phase if visit.relaying else visit.phase) is phase for visit in visits)


@pytest.mark.slow
@pytest.mark.parametrize("phase", [Phase.BODY, Phase.PREFILL, Phase.DECODE])
async def test_a_hundred_that_leave_in_a_phase_leave_nothing_behind(phase: Phase) -> None:
    """Of those in prefill and decode one is charged, some wait in the core's queue, most would be refused."""
    async with house(OBSERVE + lane(4), replicas=(replace(SLOW, parameters=ROOMY),), pool=SMALL) as gate:
        driver, engine = gate.daemon.gateway.driver, gate.replicas[0].replica.engine
        cut = 10 if phase is Phase.BODY else 0

        async def there(batch: list[Leaver]) -> None:
            await until(lambda: in_phase(gate, phase) == len(batch))
            if phase is not Phase.BODY:
                assert (driver.charged, driver.uncharged) == (1, len(batch) - 1)

        def request(name: str) -> bytes:
            sent = with_id("/generate_stream", {"inputs": name, "parameters": {"max_new_tokens": 1000}}, name)
            return sent[: len(sent) - cut]

        async with nothing_left_behind():
            engine.stall(float("inf") if phase is Phase.PREFILL else 0)
            _, lines = await leave_in_batches(gate, 100, request, there)
            engine.stall(0)
            await until(lambda: gate.active_tokens() == 0)
        assert (driver.live, driver.charged, driver.uncharged) == (0, 0, 0)
        assert {line["ending"] for line in lines} == {"cancelled"}
        if phase is not Phase.BODY:
            assert {line["would"] for line in lines} == {"admit", "queue", "refuse"}
