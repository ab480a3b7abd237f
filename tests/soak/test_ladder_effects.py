"""What each rung brings in the same burst: tokens, waits and goodput at a running gateway, with the rung and without.

Prints the table of docs/ladder.md when it is run with -s.
"""

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

import pytest

from fakes.house import QUICK, House
from fakes.two_pools import LARGE, ROUTE, two_pools
from llmshed.emulator import EmulatorSettings
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters

SECONDS, PER_SECOND, ANSWER_TOKENS = 20, 10, 96
TTFT_OBJECTIVE_SECONDS = 2.0
PAGES = ["A page that an answer is whole without. " * 12, "Another page, of less use. " * 12]
"""About a hundred tokens each; the question itself has a few."""


def engine(step_seconds: float, output_mean_tokens: float | None) -> EmulatorSettings:
    """A third of what the burst asks for at 30 ms a step."""
    times = StepTimes(step_seconds=step_seconds, seconds_per_prefill_token=1 / 6_000)
    parameters = ReplicaParameters(kv_tokens=8_192, step_times=times)
    return replace(QUICK, parameters=parameters, output_mean_tokens=output_mean_tokens, drain_seconds=0.1)


THINKS, SMALL, THINKS_NOT = engine(0.03, None), engine(0.01, None), engine(0.03, 24.0)
"""The replica that does not think is of the same speed, and ends its answers where no thoughts precede them."""

RUNGS: dict[str, tuple[dict[str, Any], EmulatorSettings]] = {
    "stop_bulk": ({"action": "stop_bulk"}, SMALL),
    "drop_enrichment": ({"action": "drop_enrichment"}, SMALL),
    "shrink_context": ({"action": "shrink_context", "drop_share": 1.0}, SMALL),
    "cap_output": ({"action": "cap_output", "max_output_tokens": 32}, SMALL),
    "disable_thinking": ({"action": "disable_thinking", "pool": "small"}, THINKS_NOT),
    "smaller_model": ({"action": "smaller_model", "pool": "small"}, SMALL),
    "shed_interactive": ({"action": "shed_interactive", "scope": {"classes": ["low"]}}, SMALL),
}
BEFORE: dict[str, tuple[dict[str, Any], ...]] = {"shed_interactive": ({"action": "stop_bulk"},)}
"""Rungs without which a ladder with this one is refused."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What came of a burst, by its decision lines."""

    lines: tuple[dict[str, Any], ...]

    @property
    def served(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["status"] == 200]

    @property
    def good(self) -> list[dict[str, Any]]:
        """Return the interactive answers whose first token came in time."""
        return [
            line
            for line in self.served
            if line["lane"] == "interactive" and (line["ttft_seconds"] or 0.0) <= TTFT_OBJECTIVE_SECONDS
        ]

    def mean(self, name: str) -> float:
        return mean(line[name] or 0 for line in self.served)

    def row(self, rung: str) -> str:
        waits = [line["ttft_seconds"] for line in self.served if line["lane"] == "interactive" and line["ttft_seconds"]]
        changed = sum(bool(line["degradations"]) for line in self.good)
        cells = (
            rung,
            f"{len(self.served)} of {len(self.lines)}",
            f"{len(self.good)}, {changed} changed",
            f"{quantiles(waits, n=2)[0]:.2f} / {quantiles(waits, n=20)[-1]:.2f} s",
            f"{self.mean('input_tokens'):.0f}",
            f"{self.mean('output_tokens'):.0f}",
            f"{self.mean('reservation_tokens'):.0f}",
        )
        return "| " + " | ".join(cells) + " |"


def burst(seed: int) -> Iterator[tuple[float, dict[str, Any], dict[str, str]]]:
    """Yield when each request comes, its body and headers: a fifth is bulk, the classes are mixed."""
    draw, at = random.Random(seed), 0.0  # noqa: S311 - a made-up crowd
    for number in range(SECONDS * PER_SECOND):
        at += draw.expovariate(PER_SECOND)
        headers = {"x-llmshed-class": draw.choice(["high", "normal", "low"])}
        if draw.random() < 0.2:
            headers["x-llmshed-intent"] = "bulk"
        messages = [{"role": "system", "content": page} for page in PAGES]
        yield (
            at,
            {
                "model": LARGE,
                "max_tokens": ANSWER_TOKENS,
                "stream": True,
                "messages": [*messages, {"role": "user", "content": f"Why is it so, the {number}th time?"}],
                "llmshed": {
                    "enrichment": {"parts": [{"message": 1}]},
                    "context": {"parts": [{"message": 0}], "keep": 0},
                },
            },
            headers,
        )


async def effect_of(folder: Path, rungs: tuple[dict[str, Any], ...], small: EmulatorSettings) -> Effect:
    """Let the burst come while the last of the rungs is held, or none."""
    async with two_pools(folder, *rungs, engines=(THINKS, small)) as gate:
        begun = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as crowd:
            for at, body, headers in burst(7):
                await asyncio.sleep(max(0.0, begun + at - asyncio.get_running_loop().time()))
                crowd.create_task(ask(gate, body, headers))
        return Effect(tuple(line for line in gate.decisions if line["route"] == ROUTE))


async def ask(gate: House, body: dict[str, Any], headers: dict[str, str]) -> None:
    await gate.post(ROUTE, body, headers)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_each_rung_does_to_the_same_burst_what_it_is_for(tmp_path: Path) -> None:
    without = await effect_of(tmp_path, (), SMALL)
    with_it = {
        name: await effect_of(tmp_path, (*BEFORE.get(name, ()), rung), small) for name, (rung, small) in RUNGS.items()
    }
    for name, effect in {"none": without, **with_it}.items():
        print(effect.row(name))  # noqa: T201 - read with -s

    assert all(len(effect.lines) == SECONDS * PER_SECOND for effect in with_it.values())
    assert not any(line["lane"] == "bulk" for line in with_it["stop_bulk"].served)
    assert not any(line["priority_class"] == "low" for line in with_it["shed_interactive"].good)
    for name in ("drop_enrichment", "shrink_context"):
        assert with_it[name].mean("input_tokens") < 0.75 * without.mean("input_tokens")
    for name, most in (("cap_output", 32), ("disable_thinking", 48)):
        assert with_it[name].mean("output_tokens") <= most < without.mean("output_tokens")
    for name in ("disable_thinking", "smaller_model"):
        assert {line["pool"] for line in with_it[name].served} == {"small"}
    for name in ("cap_output", "smaller_model"):
        assert len(with_it[name].served) > len(without.served)
