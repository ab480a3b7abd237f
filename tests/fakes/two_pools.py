"""A gateway before two pools, of a large and a small model, whose ladder is held where a test wants it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import tomli_w

from fakes.house import QUICK, House, house, until
from llmshed.admission.events import RungHeld
from llmshed.clock import SystemClock
from llmshed.emulator import Emulator, EmulatorSettings
from llmshed.ladder.standing import Hold

LARGE, SMALL = "org/large", "org/small"
PAGE = "A long page of context. " * 20
CHAT: dict[str, Any] = {
    "model": LARGE,
    "max_tokens": 40,
    "messages": [
        {"role": "system", "content": PAGE},
        {"role": "assistant", "content": "an earlier answer"},
        {"role": "user", "content": "Why?"},
    ],
    "tools": [{"type": "function", "function": {"name": "search", "parameters": {}}}],
    "llmshed": {
        "enrichment": {"tools": ["search"]},
        "context": {"parts": [{"message": 0}, {"message": 1}], "keep": 1},
    },
}
DROP = {"action": "drop_enrichment"}
SHRINK = {"action": "shrink_context", "drop_share": 1.0}
THINK = {"action": "disable_thinking", "prompt_suffix": " /no_think"}
SMALLER = {"action": "smaller_model", "pool": "small"}
CAP = {"action": "cap_output", "max_output_tokens": 5}
ROUTE = "/v1/chat/completions"


@asynccontextmanager
async def two_pools(
    folder: Path,
    *rungs: dict[str, Any],
    settings: str = "",
    tokenizer: str = "embedded",
    most_tokens: int = 8192,
    of_small: tuple[dict[str, Any], ...] = (),
    engines: tuple[EmulatorSettings, EmulatorSettings] = (QUICK, QUICK),
) -> AsyncIterator[House]:
    """Run both pools, with the last of some rungs held on the large one; its ladder is `ladder.toml` in the folder.

    Args:
        folder: for the ladders.
        rungs: of the large model's pool.
        settings: further ones of the gateway.
        tokenizer: of the small model.
        most_tokens: that a request of the small model may have.
        of_small: rungs of the small model's pool, the last of which is held.
        engines: the replicas of the large and of the small model, but for the models' names.
    """
    large, little = engines
    limits = replace(little.parameters, max_total_tokens=most_tokens, max_input_tokens=most_tokens - 1)
    emulator = Emulator(replace(little, model_id=SMALL, parameters=limits), SystemClock())
    url = await emulator.start()
    small = f'[[pools]]\nname = "small"\nmodel = "{SMALL}"\ntokenizer = "{tokenizer}"\non_count_mismatch = "warn"\n'
    if of_small:
        (folder / "small.toml").write_text(ladder_text(*of_small))
        small += f'ladder = "{folder / "small.toml"}"\n'
    small += f'[[pools.replicas]]\nname = "s1"\nurl = "{url}"\n'
    file = folder / "ladder.toml"
    file.write_text(ladder_text(*(rungs or (CAP,))))
    pool = f'name = "main"\nmodel = "{LARGE}"\ntokenizer = "embedded"\nladder = "{file}"\n'
    try:
        async with house(settings + small, replicas=(replace(large, model_id=LARGE),), pool=pool) as running:
            driver, now = running.daemon.gateway.driver, running.daemon.gateway.clock.now()
            await until(lambda: sum(replica.up for replica in driver.state().replicas) == 2)
            if rungs:
                driver.tell(RungHeld("main", Hold(f"r{len(rungs)}", now + 600, "a test")))
            if of_small:
                driver.tell(RungHeld("small", Hold(f"r{len(of_small)}", now + 600, "a test")))
            yield running
    finally:
        await emulator.stop()


def ladder_text(*rungs: dict[str, Any]) -> str:
    """Return a ladder file with rungs r1, r2, ..."""
    agreed = {"owner": "a", "agreed_on": date(2026, 12, 1)}
    named = [{"name": f"r{number}", **agreed, **rung} for number, rung in enumerate(rungs, 1)]
    return tomli_w.dumps({"schema": "llmshed.ladder/1", "name": "small", "version": "1", "rungs": named})
