"""A burst before a running gateway of two models: it climbs, degrades, sheds in order, and is on the ground again.

What callers, decision lines, metrics, audit and admin listener tell of it agrees, count by count.

Windows last half a second here, and each rung is climbed to after one above and left after two calm ones.
"""

import asyncio
import itertools
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fakes.front import Got
from fakes.house import House, house, until
from llmshed.clock import SystemClock
from llmshed.emulator import Emulator, EmulatorSettings
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters

LARGE, SMALL = "org/large", "org/small"
LADDER = """
schema = "llmshed.ladder/1"
name = "brief"
version = "1"
[windows]
window_seconds = 0.5
sample_minimum = 5
objective_seconds = 0.2
descend_needs_room = false
most_exit_windows = 40
"""
WINDOW_SECONDS, MOST_EXIT_WINDOWS = 0.5, 40  # as above
LOW = 'scope = { classes = ["low"] }'
RUNGS = (
    'name = "stop-bulk"\naction = "stop_bulk"',
    'name = "drop"\naction = "drop_enrichment"\nlargest_quality_gap = 0.1',
    'name = "cap"\naction = "cap_output"\nmax_output_tokens = 24\nlargest_quality_gap = 0.1',
    f'name = "smaller"\naction = "smaller_model"\npool = "small"\nlargest_quality_gap = 0.1\n{LOW}',
    f'name = "shed-low"\naction = "shed_interactive"\n{LOW}',
    'name = "shed-normal"\naction = "shed_interactive"\nscope = { classes = ["normal"] }',
)
NAMES = [line.split('"')[1] for line in RUNGS]
PAGE = "A page that an answer is whole without. " * 4
PER_SECOND = 60
"""Of requests in the burst; of eight seats each of the large model answers in a second, each of the small in half."""


def ladder_text() -> str:
    shared = 'owner = "on-call"\nagreed_on = 2026-12-01\nentry = { windows = 1 }\nexit = { windows = 2 }\n'
    return LADDER + "".join(f"[[rungs]]\n{rung}\n{shared}" for rung in RUNGS)


def slow(model: str, step_seconds: float) -> EmulatorSettings:
    parameters = ReplicaParameters(step_times=StepTimes(step_seconds, 1e-6, 1e-6), max_concurrent_requests=64)
    return EmulatorSettings(parameters=parameters, output_mean_tokens=None, drain_seconds=0.1, model_id=model)


@dataclass(slots=True)
class Burst:
    """A house in which it bursts, and what callers were answered."""

    house: House
    folder: Path
    answers: list[Got] = field(default_factory=list)

    async def come(self, number: int, draw: random.Random) -> None:
        bulk = number % 5 == 0
        headers = {"x-llmshed-class": draw.choice(["normal", "normal", "low", "low", "low"])}
        if bulk:
            headers["x-llmshed-intent"] = "bulk"
        body = {
            "model": LARGE,
            "max_tokens": 50,
            "messages": [{"role": "system", "content": PAGE}, {"role": "user", "content": f"Why {number}?"}],
            "llmshed": {"enrichment": {"parts": [{"message": 0}]}},
        }
        self.answers.append(await self.house.post("/v1/chat/completions", body, headers))

    @property
    def rung(self) -> int:
        return len(self.house.daemon.gateway.driver.rungs_in_force("main"))

    async def until_on_top(self, seconds: int) -> None:
        """Let requests come at a steady pace, however slow the machine, until the last rung is in force for a while.

        Args:
            seconds: how long the burst lasts at least, at the pace that it is meant to have.
        """
        draw, stays = random.Random(7), 0  # noqa: S311 - a made-up crowd
        async with asyncio.TaskGroup() as crowd:
            for number in itertools.count():
                crowd.create_task(self.come(number, draw))
                await asyncio.sleep(1 / PER_SECOND)
                stays += self.rung == len(RUNGS)
                long_enough = number >= seconds * PER_SECOND and stays >= PER_SECOND // 2
                if long_enough or number > (seconds + 40) * PER_SECOND:
                    return

    async def until_on_the_ground(self) -> None:
        """Wait for twice as long as all steps back take after early re-entries: a busy machine ends windows late."""
        async with asyncio.timeout(2 * MOST_EXIT_WINDOWS * WINDOW_SECONDS * len(RUNGS)):
            while self.rung:  # noqa: ASYNC110 - what is waited for is a clock
                await asyncio.sleep(WINDOW_SECONDS / 4)

    def audited(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "audit.jsonl").read_text("utf-8").splitlines()]

    async def metrics(self) -> dict[tuple[str, str], float]:
        text = (await self.house.ask("GET", "/metrics", admin=True)).body.decode()
        return {
            (sample.name, " ".join(value for _, value in sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }


@asynccontextmanager
async def burst_house(folder: Path) -> AsyncIterator[Burst]:
    (folder / "ladder.toml").write_text(ladder_text())
    small = Emulator(slow(SMALL, 0.01), SystemClock())
    url = await small.start()
    settings = f'[ladder]\naudit_file = "{folder}/audit.jsonl"\n[server]\ndecision_history = 10000\n'
    settings += f'[[pools]]\nname = "small"\nmodel = "{SMALL}"\nmax_concurrent_sequences = 8\ntokenizer = "embedded"\n'
    settings += f'[[pools.replicas]]\nname = "s1"\nurl = "{url}"\n'
    pool = f'name = "main"\nmodel = "{LARGE}"\nmax_concurrent_sequences = 8\ntokenizer = "embedded"\n'
    pool += f'ladder = "{folder}/ladder.toml"\n'
    try:
        async with house(settings, replicas=(slow(LARGE, 0.02),), pool=pool) as running:
            yield Burst(running, folder)
    finally:
        await small.stop()


@pytest.mark.parametrize(
    "seconds", [pytest.param(0, marks=pytest.mark.slow), pytest.param(300, marks=pytest.mark.soak)]
)
async def test_a_burst_climbs_degrades_sheds_and_leaves_nothing_behind(tmp_path: Path, seconds: int) -> None:
    async with burst_house(tmp_path) as burst:
        await burst.until_on_top(seconds)
        await burst.until_on_the_ground()
        await until(lambda: len(burst.house.decisions) == len(burst.answers))
        await burst.house.daemon.gateway.ladder_book.close()
        steps = [entry for entry in burst.audited() if entry["what"] == "step"]
        top = len(RUNGS)
        climbed = [step["after"] for step in steps if step["cause"] == "climbed"]
        assert list(dict.fromkeys(climbed)) == list(range(1, top + 1))  # a slow machine may step back on the way up
        assert all(abs(step["after"] - step["before"]) == 1 for step in steps)
        assert {step["cause"] for step in steps} == {"climbed", "descended"}
        assert (steps[-1]["after"], steps[-1]["rung"]) == (0, None)
        callers_and_lines_agree(burst)
        what_is_refused_follows_the_ladder(burst, steps)
        metrics_agree(await burst.metrics(), burst.house.decisions, steps)
        told = (await burst.house.ask("GET", "/admin/ladder", admin=True)).json()
        (pool,) = [one for one in told["pools"] if one["pool"] == "main"]
        assert (pool["rung"], pool["by_rule"], pool["hold"]) == (0, 0, None)
        history = (await burst.house.ask("GET", "/admin/ladder/history?n=1000", admin=True)).json()
        assert [one["after"] for one in reversed(history["entries"])] == [step["after"] for step in steps]


def callers_and_lines_agree(burst: Burst) -> None:
    """What each caller was told of its request is what its decision line says."""
    lines = {line["request_id"]: line for line in burst.house.decisions}
    assert len(lines) == len(burst.answers)
    for got in burst.answers:
        line = lines[got.headers["x-request-id"]]
        assert line["status"] == got.status
        named = got.headers.get("x-llmshed-degraded", "")
        assert [one for one in named.split(",") if one] == line["degradations"]
        if got.status == 200:
            moved = "smaller_model" in line["degradations"]
            assert got.headers["x-llmshed-model"] == (SMALL if moved else LARGE)
            assert (line["pool"], line["moved_from"]) == (("small", "main") if moved else ("main", None))
            if "cap_output" in line["degradations"]:
                assert got.json()["usage"]["completion_tokens"] == 24
            assert got.json()["usage"]["prompt_tokens"] == line["input_tokens"]
        else:
            assert (got.status, got.headers["x-llmshed-reason"]) == (429, line["reason"])


def what_is_refused_follows_the_ladder(burst: Burst, steps: list[dict[str, Any]]) -> None:
    """Nobody was refused by a rung before it was climbed to, and each rung that refuses did."""
    first: dict[str, float] = {}
    for line in burst.house.decisions:
        if line["rung"] is not None:
            assert line["reason"] == "shed_priority"
            first[line["rung"]] = min(first.get(line["rung"], float("inf")), line["time_seconds"])
            lowest = {"stop-bulk": "bulk", "shed-low": "interactive", "shed-normal": "interactive"}
            assert line["lane"] == lowest[line["rung"]]
    assert set(first) == {"stop-bulk", "shed-low", "shed-normal"}
    climbed_at = {step["rung"]: step["time_seconds"] for step in reversed(steps) if step["cause"] == "climbed"}
    # A request may have come a little before the step that refused it, counted or waiting meanwhile.
    assert all(first[name] >= climbed_at[name] - 2.0 for name in first)
    done = Counter(action for line in burst.house.decisions for action in line["degradations"])
    assert set(done) == {"drop_enrichment", "cap_output", "smaller_model"}


def metrics_agree(
    metrics: dict[tuple[str, str], float], lines: list[dict[str, Any]], steps: list[dict[str, Any]]
) -> None:
    """Every counter of the ladder is the count of decision lines, or of steps in the audit."""
    causes = Counter(step["cause"] for step in steps)
    for cause in ("climbed", "descended", "held", "expired"):
        assert metrics["llmshed_ladder_transitions_total", f"{cause} main"] == causes[cause]
    done = Counter((action, line["lane"]) for line in lines for action in line["degradations"])
    for (action, lane), count in done.items():
        assert metrics["llmshed_degraded_requests_total", f"{action} {lane}"] == count
    shed = Counter((line["lane"], line["priority_class"]) for line in lines if line["rung"] is not None)
    for lane, priority_class in itertools.product(("interactive", "bulk"), ("high", "normal", "low")):
        assert metrics["llmshed_shed_requests_total", f"{lane} {priority_class}"] == shed[lane, priority_class]
    assert metrics["llmshed_ladder_rung", "main"] == 0
    capped = [line for line in lines if "cap_output" in line["degradations"] and line["decision"] == "admit"]
    assert metrics["llmshed_degraded_saved_tokens_total", "cap_output"] == 26 * len(capped)
    good = sum(value for (name, _), value in metrics.items() if name == "llmshed_good_requests_total")
    degraded = sum(value for (name, _), value in metrics.items() if name == "llmshed_good_degraded_requests_total")
    assert 0 < degraded <= good
