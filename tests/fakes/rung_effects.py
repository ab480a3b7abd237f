"""A gateway before a model that thinks, with a rung held or without: what it makes of the engine's own counters.

The model thinks before it answers unless its prompt says not to, which is put into the simulated replica here: it does
not think of itself.
"""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from prometheus_client.parser import text_string_to_metric_families

from fakes.house import House, until
from fakes.two_pools import LARGE, ROUTE, THINK, two_pools
from llmshed.emulator.writing import Script, Writer
from llmshed.simulation.sequences import FinishReason, NaturalEnd

THOUGHT_TOKENS, ANSWER_TOKENS, CEILING_TOKENS = 30, 20, 80
PAGES = [f"A page of {name} that an answer is whole without. " * 12 for name in ("news", "history", "terms")]


def offering(number: int) -> dict[str, Any]:
    """Return a request that offers a page as enrichment and two as context."""
    pages = [{"role": "system", "content": text} for text in PAGES]
    return {
        "model": LARGE,
        "max_tokens": CEILING_TOKENS,
        "messages": [*pages, {"role": "user", "content": f"Why {number}?"}],
        "llmshed": {
            "enrichment": {"parts": [{"message": 0}]},
            "context": {"parts": [{"message": 1}, {"message": 2}]},
        },
    }


@dataclass(frozen=True, slots=True)
class Work:
    """Tokens that the large model's engine took in and gave, by its own counters, and the decision lines."""

    input_tokens: float
    output_tokens: float
    lines: tuple[dict[str, Any], ...]


@contextmanager
def thinking() -> Iterator[None]:
    """Let simulated replicas think before each answer unless the prompt says not to."""

    def script(self: Writer, prompt: str, seed: int | None, copy: int = 0) -> Script:
        told_not_to = str(THINK["prompt_suffix"]) in prompt
        length = ANSWER_TOKENS + (0 if told_not_to else THOUGHT_TOKENS)
        draws = random.Random(f"{prompt}/{seed}/{copy}")  # noqa: S311 - words of a made-up text
        return Script(self._vocabulary, draws, NaturalEnd(length, FinishReason.EOS))

    with patch.object(Writer, "script", script):
        yield


async def work_of(folder: Path, rungs: tuple[dict[str, Any], ...], bodies: list[dict[str, Any]]) -> Work:
    """Let all the requests come at once while the last of the rungs is held, or none."""
    with thinking():
        async with two_pools(folder, *rungs) as running:
            was = await counted(running)
            async with asyncio.TaskGroup() as crowd:
                for body in bodies:
                    crowd.create_task(running.post(ROUTE, body))
            await until(lambda: len(running.decisions) == len(bodies))
            now = await counted(running)
            return Work(now[0] - was[0], now[1] - was[1], tuple(running.decisions))


async def counted(running: House) -> tuple[float, float]:
    """Return the sums of prompt and of generated tokens that the engine tells."""
    async with running.session.get(f"{running.urls[0]}/metrics") as response:
        families = text_string_to_metric_families(await response.text())
        sums = {sample.name: sample.value for family in families for sample in family.samples}
    return sums.get("tgi_request_input_length_sum", 0.0), sums.get("tgi_request_generated_tokens_sum", 0.0)
