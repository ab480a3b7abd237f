"""Rungs at the door: what an engine is sent, what client and decision log are told, and what stays as it was."""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from tokenizers import Tokenizer

from fakes.house import House
from fakes.two_pools import CAP, CHAT, DROP, LARGE, PAGE, ROUTE, SHRINK, SMALL, SMALLER, THINK, two_pools
from llmshed.admission.events import RungHeld
from llmshed.emulator.faults import FaultPlan
from llmshed.engines.base import Call
from llmshed.engines.tgi.engine import TgiEngine
from llmshed.ladder.standing import Hold

Climbed = Callable[..., AbstractAsyncContextManager[House]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return what goes to engines, as it goes on the wire."""
    bodies: list[dict[str, Any]] = []
    write = TgiEngine.write_body

    def spied(self: TgiEngine, call: Call, output_ceiling_tokens: int | None) -> bytes:
        raw = write(self, call, output_ceiling_tokens)
        if call.route.generates:  # else it is the self-check's
            bodies.append(orjson.loads(raw))
        return raw

    monkeypatch.setattr(TgiEngine, "write_body", spied)
    return bodies


@pytest.fixture
def climbed(tmp_path: Path) -> Climbed:
    """Return how to run two pools, of a large and a small model, with the last of some rungs held on the large one."""
    return partial(two_pools, tmp_path)


def contents(body: dict[str, Any]) -> list[Any]:
    return [message["content"] for message in body["messages"]]


async def test_each_rung_does_its_part_and_is_named(climbed: Climbed, sent: list[dict[str, Any]]) -> None:
    async with climbed(DROP, SHRINK, THINK, CAP) as running:
        got = await running.post(ROUTE, CHAT)
        line = await running.decision(lambda one: bool(one["degradations"]))
    assert got.status == 200
    named = "drop_enrichment,shrink_context,disable_thinking,cap_output"
    assert got.headers["x-llmshed-degraded"] == named
    assert line["degradations"] == named.split(",")
    (body,) = sent
    assert contents(body) == ["an earlier answer", "Why? /no_think"]
    assert "tools" not in body
    assert "llmshed" not in body
    assert body["max_tokens"] == 5
    assert got.headers["x-llmshed-output-ceiling"] == "5"
    assert got.json()["usage"]["completion_tokens"] == 5
    assert int(got.headers["x-llmshed-input-tokens"]) == got.json()["usage"]["prompt_tokens"] < 60


async def test_on_the_ground_and_where_nothing_is_offered_all_stays(
    climbed: Climbed, sent: list[dict[str, Any]]
) -> None:
    plain = {name: value for name, value in CHAT.items() if name != "llmshed"}
    async with climbed() as running:
        assert "x-llmshed-degraded" not in (await running.post(ROUTE, CHAT)).headers
    async with climbed(DROP, SHRINK) as running:
        assert "x-llmshed-degraded" not in (await running.post(ROUTE, plain)).headers
    assert [contents(body) for body in sent] == [contents(CHAT)] * 2
    assert all("llmshed" not in body and body["tools"] for body in sent)


async def test_in_observe_mode_nothing_is_changed(climbed: Climbed, sent: list[dict[str, Any]]) -> None:
    async with climbed(DROP, SHRINK, CAP, settings='[admission]\nmode = "observe"\n') as running:
        got = await running.post(ROUTE, CHAT)
    assert "x-llmshed-degraded" not in got.headers
    assert contents(sent[0]) == contents(CHAT)
    assert sent[0]["max_tokens"] == 40


@pytest.mark.parametrize("rung", [DROP, SHRINK, THINK, SMALLER, CAP], ids=lambda one: str(one["action"]))
async def test_who_declines_is_refused_with_what_would_be_done(
    climbed: Climbed, rung: dict[str, Any], sent: list[dict[str, Any]]
) -> None:
    async with climbed(rung) as running:
        got = await running.post(ROUTE, CHAT, {"x-llmshed-degrade": "no"})
        line = await running.decision(lambda one: one["reason"] == "degradation_declined")
        odd = await running.post(ROUTE, CHAT, {"x-llmshed-degrade": "yes"})
    assert (got.status, got.headers["x-llmshed-reason"]) == (429, "degradation_declined")
    assert int(got.headers["retry-after"]) >= 1
    assert "rung r1 of ladder small@1" in got.json()["error"]["message"]
    assert "x-llmshed-degraded" not in got.headers
    assert line["rung"] == "r1"
    assert (odd.status, odd.json()["error"]["param"]) == (400, "x-llmshed-degrade")
    assert sent == []


async def test_who_declines_and_is_not_touched_is_served(climbed: Climbed, sent: list[dict[str, Any]]) -> None:
    low = {**CAP, "scope": {"classes": ["low"]}}
    chat = {"model": LARGE, "max_tokens": 40, "messages": [{"role": "user", "content": "Why?"}]}
    async with climbed(low) as running:
        assert (await running.post(ROUTE, chat, {"x-llmshed-degrade": "no"})).status == 200
        got = await running.post(ROUTE, chat, {"x-llmshed-class": "low"})
    assert got.headers["x-llmshed-degraded"] == "cap_output"
    assert [body["max_tokens"] for body in sent] == [40, 5]


async def test_a_smaller_model_counts_with_its_own_tokenizer(
    climbed: Climbed, sent: list[dict[str, Any]], data_dir: Path
) -> None:
    """The text goes to a model of another tokenizer; its count is that of the library, called directly."""
    folder = data_dir / "tokenizers" / "qwen3"
    body = {"model": LARGE, "prompt": PAGE, "max_tokens": 4}
    async with climbed(SMALLER, tokenizer=str(folder)) as running:
        got = await running.post("/v1/completions", body)
        line = await running.decision(lambda one: bool(one["moved_from"]))
        straight = await running.post("/v1/completions", {**body, "model": SMALL})
    expected = len(Tokenizer.from_file(str(folder / "tokenizer.json")).encode(PAGE).ids)
    assert got.status == 200
    assert int(got.headers["x-llmshed-input-tokens"]) == expected == int(straight.headers["x-llmshed-input-tokens"])
    assert (got.headers["x-llmshed-model"], got.headers["x-llmshed-degraded"]) == (SMALL, "smaller_model")
    assert (line["pool"], line["moved_from"], line["model"]) == ("small", "main", LARGE)
    assert sent[0]["model"] == SMALL
    assert "x-llmshed-degraded" not in straight.headers


async def test_what_fits_the_first_model_and_not_the_other_is_refused_truly(
    climbed: Climbed, sent: list[dict[str, Any]]
) -> None:
    body = {"inputs": PAGE * 8, "model": LARGE, "parameters": {"max_new_tokens": 4}}
    async with climbed(SMALLER, most_tokens=256) as running:
        got = await running.post("/generate", body)
        again = await running.post("/generate", body)
        running.daemon.gateway.driver.tell(RungHeld("main", Hold("r1", 0.0, "over")))
        served = await running.post("/generate", body)
    assert (got.status, got.headers["x-llmshed-reason"]) == (413, "context_limit")
    assert got.json()["limits"]["max_total_tokens"] == 256
    assert got.headers["x-llmshed-degraded"] == "smaller_model"
    assert again.status == 413
    assert served.status == 200, "what the other model refused is not remembered against this one"
    assert len(sent) == 1


async def test_the_ladder_of_the_pool_that_answers_holds_for_who_is_sent_there(
    climbed: Climbed, sent: list[dict[str, Any]]
) -> None:
    async with climbed(SHRINK, SMALLER, of_small=(DROP, CAP)) as running:
        moved = await running.post(ROUTE, CHAT)
        straight = await running.post(ROUTE, {**CHAT, "model": SMALL})
        declined = await running.post(ROUTE, CHAT, {"x-llmshed-degrade": "no"})
    assert moved.headers["x-llmshed-degraded"] == "shrink_context,smaller_model,drop_enrichment,cap_output"
    assert straight.headers["x-llmshed-degraded"] == "drop_enrichment,cap_output"
    assert [(body["model"], "tools" in body, body["max_tokens"]) for body in sent] == [(SMALL, False, 5)] * 2
    assert [len(body["messages"]) for body in sent] == [2, 3]
    assert "does shrink_context, smaller_model, drop_enrichment" in declined.json()["error"]["message"]


async def test_a_failure_that_comes_after_the_change_names_it_too(
    climbed: Climbed, sent: list[dict[str, Any]], data_dir: Path
) -> None:
    """The other model has no template of chats, which shows when one is sent there; an engine may break as well."""
    async with climbed(DROP, SMALLER, tokenizer=str(data_dir / "tokenizers" / "t5")) as running:
        got = await running.post(ROUTE, CHAT)
        line = await running.decision()
    named = ["drop_enrichment", "smaller_model"]
    assert (got.status, got.headers["x-llmshed-degraded"].split(",")) == (400, named)
    assert (line["degradations"], line["moved_from"], sent) == (named, "main", [])
    async with climbed(SHRINK, CAP) as running:
        running.replicas[0].replica.faults.plan = FaultPlan(overloaded=True)
        busy = await running.post(ROUTE, CHAT)
        running.replicas[0].replica.faults.plan = FaultPlan(fail_after_events=1)
        broken = await running.post(ROUTE, CHAT)
    assert [got.status for got in (busy, broken)] == [429, 502]
    assert {got.headers["x-llmshed-degraded"] for got in (busy, broken)} == {"shrink_context,cap_output"}


def streams() -> Iterator[tuple[str, dict[str, Any]]]:
    text = {"context": {"parts": [{"start": 0, "end": len(PAGE)}]}}
    yield ROUTE, {**CHAT, "stream": True}
    yield (
        "/generate_stream",
        {"inputs": PAGE + "Why?", "parameters": {"max_new_tokens": 4}, "model": LARGE, "llmshed": text},
    )
    yield "/", {"inputs": PAGE + "Why?", "stream": False, "model": LARGE, "llmshed": text}
    yield "/v1/completions", {"prompt": PAGE + "Why?", "model": LARGE, "max_tokens": 4, "llmshed": text}


@pytest.mark.parametrize(("route", "body"), list(streams()))
async def test_every_generating_route_takes_the_field(
    climbed: Climbed, route: str, body: dict[str, Any], sent: list[dict[str, Any]]
) -> None:
    async with climbed(SHRINK) as running:
        got = await running.post(route, body)
    assert (got.status, got.headers["x-llmshed-degraded"]) == (200, "shrink_context")
    assert PAGE not in str(sent[0])
    assert "Why?" in str(sent[0])


async def test_a_field_that_is_wrong_is_refused_in_calm_times(climbed: Climbed, sent: list[dict[str, Any]]) -> None:
    async with climbed() as running:
        got = await running.post(ROUTE, {**CHAT, "llmshed": {"context": {"parts": [{"message": 2}]}}})
    assert (got.status, got.json()["error"]["param"]) == (400, "llmshed.context.parts[0].message")
    assert sent == []


async def test_a_repeat_is_known_whatever_was_left_out_of_it_meanwhile(climbed: Climbed) -> None:
    async with climbed(SHRINK) as running:
        await running.post(ROUTE, CHAT)
        running.daemon.gateway.driver.tell(RungHeld("main", Hold("r1", 0.0, "over")))
        await running.post(ROUTE, CHAT)
        lines = [await running.decision(lambda one: not one["degradations"]), running.decisions[0]]
    assert lines[0]["fingerprint"] == lines[1]["fingerprint"]


@pytest.mark.slow
async def test_the_page_of_clients_shows_how_to_offer(
    climbed: Climbed, sent: list[dict[str, Any]], repository: Path
) -> None:
    openai = pytest.importorskip("openai", reason="extra `clients` is not installed")
    section = (repository / "docs" / "clients.md").read_text().partition("## Offering what may be left out\n")[2]
    (block,) = re.findall(r"^```python\n(.*?)^```$", section.partition("\n## ")[0], flags=re.MULTILINE | re.DOTALL)
    defined: dict[str, Any] = {}
    exec(compile(block, "clients.md", "exec"), defined)  # noqa: S102 - the page's own code
    async with climbed(SHRINK) as running:
        with openai.OpenAI(base_url=f"{running.data}/v1", api_key="none") as client:
            told = [
                await asyncio.to_thread(defined["answer"], client, LARGE, pages, "Why?")
                for pages in (["one", "two", "three"], [])
            ]
    assert [done for _, done in told] == ["shrink_context", ""]
    assert all(text for text, _ in told)
    assert [[part["text"] for part in body["messages"][0]["content"]] for body in sent] == [["three", "Why?"], ["Why?"]]
