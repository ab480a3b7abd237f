"""Streams of twenty real minutes with a token in half a minute, in both lanes, through the programs as they run.

What two hours do is shown in leaping time by `tests/integration/test_long_streams.py`.
"""

import asyncio
import os
from pathlib import Path

import aiohttp
import pytest

from fakes.programs import serve, simulate

SECONDS = float(os.environ.get("LLMSHED_SOAK_SECONDS", "1200"))
TOKEN_SECONDS = min(30.0, SECONDS / 4)
TOKENS = int(SECONDS / TOKEN_SECONDS)
CONFIG = """
[[pools]]
gross_ceiling_tokens = 100_000
replicas = [{{ name = "r1", url = "{}" }}]
"""


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 300)
async def test_slow_streams_of_twenty_minutes_are_cut_by_nothing(tmp_path: Path) -> None:
    step = ("--output-mean", "ceiling", "--step-seconds", str(TOKEN_SECONDS), "--decode-sequence-seconds", "0")
    async with (
        simulate(*step) as replica,
        serve(tmp_path, CONFIG.format(replica)) as served,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session,
    ):

        async def stream(headers: dict[str, str]) -> int:
            body = {"inputs": "Hello", "parameters": {"max_new_tokens": TOKENS}}
            async with session.post(f"{served.data}/generate_stream", json=body, headers=headers) as answer:
                assert answer.status == 200
                return (await answer.read()).count(b'"token":')

        tokens = await asyncio.gather(stream({}), stream({"x-llmshed-intent": "bulk"}))
        assert set(tokens) == {TOKENS}
        async with asyncio.timeout(10):
            while len(served.decisions()) < 2:  # noqa: ASYNC110 - a file of another process
                await asyncio.sleep(0.1)
        assert [line["ending"] for line in served.decisions()] == ["finished", "finished"]
