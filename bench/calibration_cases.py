"""What calibrations are tried on: three replicas, two engines, three kinds of traffic."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import product
from math import exp
from pathlib import Path
from random import Random

from virtual_replica import NoisyStepTimes

from llmshed.calibration.plan import Objective, Plan, Shape
from llmshed.simulation.building import Parameters
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.hardware.parsing import parse_replica
from llmshed.workload.asks import Ask

ROOT = Path(__file__).resolve().parents[1]
REPLICAS = ("llama-3.1-8b-h100", "llama-3-8b-a10g", "llama-3.1-70b-4xh100")
ENGINES = ("tgi", "vllm")
SEEDS = (1, 2, 3, 4, 5)
TGI_PERMITS = 1024
"""Requests that TGI takes at once here; with its default, 128, seats would bind on the large GPUs and not tokens."""
NOISE = 0.05
"""Standard deviation of the logarithm of a step's time in the runs that are judged; truth knows none."""
LANE = "interactive"
OBJECTIVES = {LANE: Objective(ttft_seconds=2.0, tpot_seconds=0.1)}
"""As the interactive lane ships."""
REQUESTS = 400
"""Requests of a mix."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Prompts of log-normal length, and ceilings of which each is as likely as the other; all in tokens."""

    median_input: int
    spread: float
    least_input: int
    most_input: int
    ceilings: tuple[int, ...]

    def mix(self) -> tuple[Shape, ...]:
        """Return the mix; always the same."""
        rng = Random("bench/calibration")  # noqa: S311 - lengths, nothing is kept secret
        return tuple(self._shape(rng) for _ in range(REQUESTS))

    def _shape(self, rng: Random) -> Shape:
        drawn = self.median_input * exp(rng.gauss(0, self.spread))
        return Shape(int(min(max(drawn, self.least_input), self.most_input)), rng.choice(self.ceilings), LANE)


TRAFFIC = {
    "chat": Traffic(300, 0.9, 16, 3000, (128, 256, 512)),
    "documents": Traffic(800, 0.5, 100, 3000, (128, 256, 512)),
    "long answers": Traffic(200, 0.7, 16, 2000, (256, 512, 1024)),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One replica under one kind of traffic."""

    replica: str
    engine: str
    traffic: str

    @property
    def mix(self) -> tuple[Shape, ...]:
        """Return the mix of its traffic."""
        return TRAFFIC[self.traffic].mix()

    def parameters(self) -> Parameters:
        """Return the replica without noise."""
        text = (ROOT / "profiles" / "replicas" / f"{self.replica}.toml").read_text("utf-8")
        head = text.partition("[engine]")[0]
        settings = f"max_concurrent_requests = {TGI_PERMITS}\n" if self.engine == "tgi" else ""
        return parse_replica(f'{head}[engine]\nmode = "{self.engine}"\n{settings}', self.replica).parameters

    def plan(self) -> Plan:
        """Return the plan of a calibration of it."""
        parameters = self.parameters()
        return Plan(self.mix, OBJECTIVES, max_input_tokens=8000, first_level_tokens=parameters.kv_tokens // 10)


def cases() -> Iterator[Case]:
    """Yield all cases."""
    return (Case(*chosen) for chosen in product(REPLICAS, ENGINES, TRAFFIC))


def noisy(parameters: Parameters, rng: Random) -> Parameters:
    """Return a replica each of whose steps takes a little longer or shorter."""
    given = {field.name: getattr(parameters.step_times, field.name) for field in fields(StepTimes)}
    return replace(parameters, step_times=NoisyStepTimes(**given, spread=NOISE, rng=rng))


def natural_ends(rng: Random) -> Callable[[Ask], int]:
    """Return where a model ends by itself: anywhere up to a fifth beyond the ceiling, so that one in six is cut."""
    return lambda ask: max(round(rng.random() * 1.2 * ask.ceiling_tokens), 1)
