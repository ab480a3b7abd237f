"""Prompts of a megabyte are counted beside the event loop, not on it."""

import asyncio
from pathlib import Path

import pytest

from fakes.quietest import quietest
from llmshed.clock import SystemClock
from llmshed.config.counting import CountingSettings
from llmshed.gateway.counting.pool import CountingPool, TooLarge
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.load import find
from llmshed.tokenizing.prompts import TextPrompt

MEGABYTE = 1_000_000
BOUND_SECONDS = 0.1


@pytest.fixture(scope="module")
def text(repository: Path) -> str:
    """Two megabytes of prose and code: the package's own."""
    source = "".join(path.read_text(encoding="utf-8") for path in sorted(repository.glob("src/llmshed/*/*.py")))
    return (source * (1 + 2 * MEGABYTE // len(source)))[: 2 * MEGABYTE]


@pytest.mark.slow
async def test_eight_megabytes_in_counting_do_not_stop_the_loop(text: str) -> None:
    # `encode`, which holds the interpreter, would take over a second for each.
    worst_gap = await quietest(lambda: gap_while_counting(text), BOUND_SECONDS)
    assert worst_gap < BOUND_SECONDS, f"the loop stood still for {worst_gap:.3f} s"


async def gap_while_counting(text: str) -> float:
    """Count eight megabytes beside a ticker and return its longest gap."""
    counter = build_counter(find("embedded"), "tgi")
    pool = CountingPool(CountingSettings(), SystemClock())
    prompts = [TextPrompt(text[start : start + MEGABYTE]) for start in range(0, 80_000, 10_000)]
    alone = [counter.count(prompt).tokens for prompt in prompts[:2]]
    loop = asyncio.get_running_loop()
    worst_gap = 0.0

    async def tick() -> None:
        nonlocal worst_gap
        last = loop.time()
        while True:
            await asyncio.sleep(0.001)
            worst_gap = max(worst_gap, loop.time() - last)
            last = loop.time()

    ticking = asyncio.ensure_future(tick())
    results = await asyncio.gather(*(pool.count(counter, (prompt,)) for prompt in prompts))
    ticking.cancel()
    pool.close()
    counted = [result[0].tokens for result in results if not isinstance(result, TooLarge)]
    assert len(counted) == 8
    assert counted[:2] == alone
    return worst_gap
