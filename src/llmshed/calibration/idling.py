"""The first phase: one request at a time on the idle replica, for what only an unloaded replica shows.

The fixed prompt and the decode step are its behavioural print: they tell a replica that has become another by its pace,
whatever its description says.
"""

from statistics import fmean, median
from typing import TYPE_CHECKING

from llmshed.calibration.drawing import Draws
from llmshed.calibration.plan import Plan, Shape
from llmshed.calibration.results import Idle
from llmshed.workload.asks import Outcome, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

FIXED_PROMPT_TOKENS = 1024
"""Length of the fixed prompt; shorter where the engine takes no such prompt."""
FIXED_PROMPTS = 5
SHORT_PROMPT_TOKENS = 16
STEP_OUTPUT_TOKENS = 65
"""Output of the requests that tell the decode step: 64 steps after the first token."""
STEP_REQUESTS = 3
MIX_REQUESTS = 40


class Idling:
    """Requests to be sent one after the other, and what came of them. The first of all only wakes the replica.

    Args:
        plan: the mix, and the engine's longest prompt.
        rng: what is drawn from.
    """

    def __init__(self, plan: Plan, rng: "Random") -> None:
        draws = Draws(plan.mix, rng)
        lane = plan.mix[0].lane
        longest = FIXED_PROMPT_TOKENS if plan.max_input_tokens is None else plan.max_input_tokens
        self.fixed_prompt_tokens = min(FIXED_PROMPT_TOKENS, longest)
        fixed = Shape(self.fixed_prompt_tokens, 1, lane)
        step = Shape(min(SHORT_PROMPT_TOKENS, longest), STEP_OUTPUT_TOKENS, lane)
        mix = [draws.fresh() for _ in range(MIX_REQUESTS)]
        self._left: Iterator[tuple[str, Shape]] = iter(
            [
                ("first", fixed),
                *[("fixed", fixed)] * FIXED_PROMPTS,
                *[("step", step)] * STEP_REQUESTS,
                *[("mix", Shape(shape.input_tokens, 1, shape.lane)) for shape in mix],
            ]
        )
        self._asked = ""
        self._seen: dict[str, list[float]] = {}

    def next_shape(self) -> Shape | None:
        """Return what to send next; None at the end."""
        following = next(self._left, None)
        if following is None:
            return None
        self._asked, shape = following
        return shape

    def answered(self, sample: Sample) -> None:
        """Note the answer to the last one; what did not finish tells nothing."""
        told = sample.tpot_seconds if self._asked == "step" else sample.ttft_seconds
        if sample.outcome is Outcome.FINISHED and told is not None:
            self._seen.setdefault(self._asked, []).append(told)

    def result(self) -> Idle | None:
        """Return what was measured; None while any of it is missing."""
        fixed, step, mix = (self._seen.get(name) for name in ("fixed", "step", "mix"))
        if not (fixed and step and mix):
            return None
        ordered = sorted(mix)
        return Idle(
            self.fixed_prompt_tokens,
            median(fixed),
            median(step),
            median(ordered),
            ordered[min(int(0.95 * len(ordered)), len(ordered) - 1)],
        )

    @property
    def prefill_tokens_per_second(self) -> float | None:
        """Return the pace of a lone prompt, the step it takes in any case included; None before it was measured."""
        fixed = self._seen.get("fixed")
        return None if not fixed else self.fixed_prompt_tokens / fmean(fixed)
