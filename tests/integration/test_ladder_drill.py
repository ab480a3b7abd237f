"""A drill of a running gateway with a large and a small model, and what the gateway then knows of its fallbacks."""

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.house import QUICK, House, house, until
from llmshed.clock import SystemClock
from llmshed.emulator import Emulator, EmulatorSettings
from llmshed.emulator.wire import info as true_info
from llmshed.gateway.ladders import evaluations
from llmshed.gateway.replicas import life
from llmshed.ladder.staleness import Why
from llmshed.simulation.parameters import ReplicaParameters

LARGE, SMALL = "org/large", "org/small"
CHAT = {"model": LARGE, "max_tokens": 30, "messages": [{"role": "user", "content": "Why?"}]}
LADDER = """
schema = "llmshed.ladder/1"
name = "drilled"
version = "1"
evaluations = "evaluations.json"
[[rungs]]
name = "stop-bulk"
action = "stop_bulk"
owner = "a"
agreed_on = 2026-12-01
[[rungs]]
name = "short"
action = "cap_output"
owner = "a"
agreed_on = 2026-12-01
max_output_tokens = 2
largest_quality_gap = 0.1
scope = { classes = ["normal"] }
[[rungs]]
name = "smaller"
action = "smaller_model"
owner = "a"
agreed_on = 2026-12-01
pool = "small"
largest_quality_gap = 0.1
scope = { classes = ["low"] }
"""
"""The two rungs that change answers touch different classes, so neither path holds the other."""


def settings_of(model: str) -> EmulatorSettings:
    """Return settings whose parameters are no other replica's."""
    return replace(QUICK, model_id=model, parameters=replace(QUICK.parameters))


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluations, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(life, "INFO_SECONDS", 0.05)
    monkeypatch.setattr(life, "SUSPICION_SECONDS", 0.01)


@pytest.fixture
def revisions(monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    """Let each replica tell a revision of its model: `first`, or what a test says by its parameters."""
    told: dict[int, str] = {}

    def info(parameters: ReplicaParameters, model_id: str) -> dict[str, Any]:
        return {**true_info(parameters, model_id), "model_sha": told.get(id(parameters), "first")}

    monkeypatch.setattr("llmshed.emulator.server.info", info)
    return told


@asynccontextmanager
async def two_pools(place: Path, settings: str = "") -> AsyncIterator[House]:
    (place / "ladder.toml").write_text(LADDER)
    async with emulated(settings_of(SMALL)) as url:
        small = f'[[pools]]\nname = "small"\nmodel = "{SMALL}"\ntokenizer = "embedded"\n'
        small += f'[[pools.replicas]]\nname = "s1"\nurl = "{url}"\n'
        pool = f'name = "main"\nmodel = "{LARGE}"\ntokenizer = "embedded"\nladder = "{place}/ladder.toml"\n'
        upstream = "[upstream]\nprobe_interval_seconds = 0.01\nsignal_interval_seconds = 0\n"
        async with house(settings + upstream + small, replicas=(settings_of(LARGE),), pool=pool) as gate:
            fleet = gate.daemon.gateway.fleet
            await until(lambda: fleet.specs("small") and fleet.specs("main"))
            yield gate


@asynccontextmanager
async def emulated(settings: EmulatorSettings, port: int = 0) -> AsyncIterator[str]:
    emulator = Emulator(settings, SystemClock())
    try:
        yield await emulator.start(port=port)
    finally:
        await emulator.stop()


def whys(gate: House) -> list[tuple[str, Why]]:
    return [(one.rung, one.why) for one in gate.daemon.gateway.evaluations.stale("main")]


async def drill_pass(gate: House, **more: Any) -> dict[str, Any]:
    got = await gate.ask("POST", "/admin/ladder/drill", admin=True, json=more)
    assert got.status == 200, got.body
    told: dict[str, Any] = got.json()
    return told


def taking(word: str, rung: str) -> dict[str, str]:
    return {"x-llmshed-drill": word, "x-llmshed-drill-rung": rung}


async def test_a_request_of_a_drill_takes_its_path_and_counts_in_no_window(tmp_path: Path) -> None:
    async with two_pools(tmp_path) as gate:
        told = await drill_pass(gate)
        assert (told["pool"], told["ladder"], told["in_force"]) == ("main", "drilled@1", [])
        assert told["evaluations"] == str(tmp_path / "evaluations.json")
        assert [rung["name"] for rung in told["rungs"]] == ["short", "smaller"]
        assert told["pools"]["main"]["facts"]["model_id"] == LARGE
        assert told["pools"]["small"] == {"model": SMALL, "facts": told["pools"]["small"]["facts"]}
        found = {}
        for rung in ("none", "short", "smaller"):
            got = await gate.post("/v1/chat/completions", CHAT, taking(told["pass"], rung))
            assert got.status == 200, got.body
            headers = got.headers
            found[rung] = (
                headers["x-llmshed-model"],
                headers.get("x-llmshed-degraded"),
                got.json()["usage"]["completion_tokens"],
            )
        assert found == {
            "none": (LARGE, None, 30), "short": (LARGE, "cap_output", 2), "smaller": (SMALL, "smaller_model", 30),
        }  # fmt: skip
        await until(lambda: len(gate.decisions) == 3)
        assert [line["drill"] for line in gate.decisions] == ["none", "short", "smaller"]
        ladder = next(one for one in gate.daemon.gateway.driver.state().pools if one.name == "main")
        assert ladder.ladder is not None
        assert ladder.ladder.window is None


async def test_a_cap_above_the_ceiling_of_who_names_none_changes_nothing(tmp_path: Path) -> None:
    async with two_pools(tmp_path, "[lanes.interactive]\ndefault_output_tokens = 1\n") as gate:
        word = (await drill_pass(gate))["pass"]
        chat = {name: value for name, value in CHAT.items() if name != "max_tokens"}
        got = await gate.post("/v1/chat/completions", chat, taking(word, "short"))
        assert got.headers["x-llmshed-output-ceiling"] == "1"
        assert "x-llmshed-degraded" not in got.headers


async def test_without_a_pass_nobody_chooses_a_path(tmp_path: Path) -> None:
    async with two_pools(tmp_path) as gate:
        word = (await drill_pass(gate, pool="main"))["pass"]
        wrong = ({"x-llmshed-drill-rung": "none"}, taking("x" * 32, "short"), taking("", "none"))
        for headers in wrong:
            got = await gate.post("/v1/chat/completions", CHAT, headers)
            assert (got.status, got.headers["x-llmshed-reason"]) == (403, "forbidden")
        for headers in (taking(word, "stop-bulk"), taking(word, ""), {"x-llmshed-drill": word}):
            got = await gate.post("/v1/chat/completions", CHAT, headers)
            assert (got.status, got.headers["x-llmshed-reason"]) == (400, "malformed")
            assert "none, short, smaller" in got.body.decode()
        assert {line["drill"] for line in gate.decisions} == {None}
        got = await gate.ask("POST", "/admin/ladder/drill", admin=True, json={"pool": "small"})
        assert got.status == 400
        assert "must be one of main" in got.body.decode()


async def test_a_drill_goes_by_its_path_whatever_is_in_force(tmp_path: Path) -> None:
    async with two_pools(tmp_path) as gate:
        hold = {"pool": "main", "rung": "short", "for_seconds": 600, "reason": "a test"}
        assert (await gate.ask("POST", "/admin/ladder/trigger", admin=True, json=hold)).status == 200
        told = await drill_pass(gate)
        assert told["in_force"] == ["stop-bulk", "short"]
        plain = await gate.post("/v1/chat/completions", CHAT)
        primary = await gate.post("/v1/chat/completions", CHAT, taking(told["pass"], "none"))
        assert plain.headers["x-llmshed-degraded"] == "cap_output"
        assert "x-llmshed-degraded" not in primary.headers
        assert [got.json()["usage"]["completion_tokens"] for got in (plain, primary)] == [2, 30]


@pytest.mark.slow
async def test_a_drill_is_kept_and_a_replaced_primary_makes_it_stale(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, revisions: dict[int, str]
) -> None:
    caplog.set_level(logging.INFO, "llmshed.gateway.ladders")
    cases = tmp_path / "cases.jsonl"
    long_enough = {"checks": [{"regex": "(?s)^.{40,}$"}], "messages": CHAT["messages"], "max_tokens": 30}
    cases.write_text("\n".join(json.dumps({"id": f"{number}"} | long_enough) for number in range(4)))
    async with two_pools(tmp_path) as gate:
        await until(lambda: whys(gate))
        assert whys(gate) == [("short", Why.MISSING), ("smaller", Why.MISSING)]
        code, told = await drilled(gate, cases)
        assert code == 78, told  # two tokens are never long enough
        await until(lambda: whys(gate) == [("short", Why.BEYOND_GAP)])
        (drill,) = json.loads((tmp_path / "evaluations.json").read_text())["drills"]
        primary, short, smaller = drill["paths"]
        assert [path["result"]["value"] for path in drill["paths"]] == [1.0, 0.0, 1.0]
        assert (short["gap"]["value"], smaller["gap"]["value"]) == (1.0, 0.0)
        assert (short["changed"], smaller["changed"], smaller["pool"]) == (4, 4, "small")
        assert (primary["output_tokens"], short["output_tokens"]) == (120, 8)
        both = [("short", Why.PRIMARY_CHANGED), ("short", Why.BEYOND_GAP), ("smaller", Why.PRIMARY_CHANGED)]
        async with replaced(gate, settings_of(LARGE), revisions):
            await until(lambda: whys(gate) == both)
            assert gate.daemon.gateway.fleet.facts("main")["model_revision"] == "another"
        assert [record.__dict__["why"] for record in caplog.records if record.message == "ladder_evaluation_stale"] == [
            Why.MISSING, Why.MISSING, Why.BEYOND_GAP, Why.PRIMARY_CHANGED, Why.PRIMARY_CHANGED,
        ]  # fmt: skip


async def drilled(gate: House, cases: Path) -> tuple[int, str]:
    """Run the command as a user does, in a process of its own."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "llmshed.commands", "ladder", "drill", "--set", str(cases), "--gateway", gate.data,
        "--concurrency", "2", "--yes", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    printed, _ = await child.communicate()
    return child.returncode or 0, printed.decode()


@asynccontextmanager
async def replaced(gate: House, settings: EmulatorSettings, revisions: dict[int, str]) -> AsyncIterator[None]:
    """End the large model's replica, and start one of another revision at its address."""
    revisions[id(settings.parameters)] = "another"
    await gate.replicas[0].stop()
    async with emulated(settings, port=int(gate.urls[0].rpartition(":")[2])):
        yield
