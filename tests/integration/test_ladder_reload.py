"""A rung's target pool that comes and goes by reloads, while requests are on their way to it."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from fakes.house import House
from fakes.two_pools import CAP, CHAT, ROUTE, SMALLER, ladder_text, two_pools

ROUNDS, CALLERS = 8, 12
PLAIN = {name: value for name, value in CHAT.items() if name not in {"tools", "llmshed"}}


@pytest.mark.slow
async def test_a_target_that_goes_while_requests_are_under_way_costs_nobody_a_crash(tmp_path: Path) -> None:
    async with two_pools(tmp_path, SMALLER) as gate:
        whole, file, told = gate.toml, tmp_path / "ladder.toml", Counter[tuple[int, str | None]]()
        stopped = asyncio.Event()
        async with asyncio.TaskGroup() as callers:
            for _ in range(CALLERS):
                callers.create_task(call_until(gate, stopped, told))
            for number in range(ROUNDS):
                away = number % 2 == 0
                file.write_text(ladder_text(CAP if away else SMALLER))
                gate.toml = "" if away else whole
                assert (await gate.ask("POST", "/admin/reload", admin=True)).status == 200
                await asyncio.sleep(0.1)
            stopped.set()
        assert told[200, None] > CALLERS
        unserved = {(503, "no_replica"), (503, "tokenizer_unavailable"), (404, "model_not_found")}
        assert set(told) <= {(200, None)} | unserved, told
        assert gate.daemon.gateway.driver.charged == 0


async def call_until(gate: House, stopped: asyncio.Event, told: Counter[tuple[int, str | None]]) -> None:
    while not stopped.is_set():
        got = await gate.post(ROUTE, PLAIN)
        told[got.status, got.reason] += 1
