"""The objectives of a request: its time to first token is measured by what it would be on an idle target.

A request is good when its first token came within max(1 s, 5 x its idle TTFT) and its mean time per token after it
stayed within the TPOT objective. Idle TTFT is taken to be a straight line over the input tokens, through the least of a
few probes at two sizes, sent one at a time before the run: noise and other traffic only ever add.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from llmshed.workload.asks import Ask

if TYPE_CHECKING:
    from llmshed.loadtest.client import Client

LEAST_TTFT_SECONDS: Final = 1.0
IDLE_FACTOR: Final = 5.0
PROBES: Final = 3
_PROBE_OUTPUT_TOKENS: Final = 1


@dataclass(frozen=True, slots=True)
class Yardstick:
    """Objectives of any request.

    Args:
        tpot_seconds: most mean time per token after the first.
        base_seconds: idle TTFT of an empty prompt.
        token_seconds: what each input token adds to it.
    """

    tpot_seconds: float
    base_seconds: float = 0.0
    token_seconds: float = 0.0

    def ttft_seconds(self, input_tokens: int) -> float:
        """Return the most time to the first token of a prompt so long."""
        idle = self.base_seconds + self.token_seconds * input_tokens
        return max(LEAST_TTFT_SECONDS, IDLE_FACTOR * idle)


def line_through(tpot_seconds: float, points: Sequence[tuple[int, float]]) -> Yardstick:
    """Return the yardstick of idle TTFTs by input tokens; the smallest and the largest prompt decide.

    With one size the line is flat, without any there is only the least objective. A line that would fall is flat at its
    greater end, since no prompt is quicker for being longer.
    """
    if not points:
        return Yardstick(tpot_seconds)
    (small, small_seconds), (large, large_seconds) = min(points), max(points)
    if large == small or large_seconds <= small_seconds:
        return Yardstick(tpot_seconds, max(small_seconds, large_seconds))
    slope = (large_seconds - small_seconds) / (large - small)
    base = small_seconds - slope * small
    return Yardstick(tpot_seconds, max(base, 0.0), slope if base >= 0 else large_seconds / large)


async def probed(client: "Client", tpot_seconds: float, sizes: Sequence[int]) -> Yardstick:
    """Measure the idle TTFT of prompts of these sizes and return the yardstick; a size that is not served is left out.

    Raises:
        PromptError: a prompt of such a size cannot be made.
    """
    points = []
    for size in sorted(set(sizes)):
        times = [await _ttft(client, f"probe/{size}/{number}", size) for number in range(PROBES)]
        served = [time for time in times if time is not None]
        if served:
            points.append((size, min(served)))
    return line_through(tpot_seconds, points)


async def _ttft(client: "Client", name: str, input_tokens: int) -> float | None:
    ask = Ask(name, input_tokens, _PROBE_OUTPUT_TOKENS, runs_to_ceiling=False, lane=None)
    return (await client.send(ask)).sample.ttft_seconds
