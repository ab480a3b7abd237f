"""Calibrations of replicas that are unlike those of the table: `python bench/calibration_robust.py`, a minute.

Steps a fifth shorter or longer, and a TGI whose answers end long before their ceilings, which it cannot be told not to
do. Each has a truth of its own, by the sweep of `bench/calibration_truth.py` with the same ends.
"""

import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from random import Random

from calibration_cases import LANE, OBJECTIVES, Case, natural_ends, noisy
from calibration_truth import truth_of
from virtual_replica import VirtualReplica
from virtual_run import VirtualRun

from llmshed.calibration import Calibration, Phase, Plan, Shape
from llmshed.simulation.building import Parameters
from llmshed.simulation.cost import StepTimes
from llmshed.workload.asks import Ask

SEEDS = range(1, 9)
CASE = Case("llama-3-8b-a10g", "tgi", "chat")
MIXED = tuple(Shape(*sizes, LANE) for sizes in ((256, 128), (256, 128), (1024, 256), (1024, 256), (2048, 512)))
"""What the command sends by default."""
Ends = Callable[[Random], Callable[[Ask], int]]
"""Makes, of a source of draws, what tells where the model ends."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One replica; `ends` None lets answers run to their ceiling."""

    name: str
    mix: tuple[Shape, ...]
    parameters: Parameters
    ends: Ends | None

    @property
    def plan(self) -> Plan:
        """Return the plan of a calibration that knows nothing of the KV cache, as before TGI 3."""
        return Plan(self.mix, OBJECTIVES, max_input_tokens=8191)


def exponential(mean: int, rng: Random) -> Callable[[Ask], int]:
    """Return where chats end, as the simulated replica has it."""
    return lambda _: 1 + round(rng.expovariate(1 / mean))


def variants() -> Iterator[Variant]:
    """Yield all of them."""
    parameters = CASE.parameters()
    for factor in (0.8, 1.2):
        times = {field.name: factor * getattr(parameters.step_times, field.name) for field in fields(StepTimes)}
        slower = replace(parameters, step_times=StepTimes(**times))
        yield Variant(f"chat, steps x {factor:g}", CASE.mix, slower, None)
    yield Variant("chat, answers end at 1 to 1.2 x their ceiling", CASE.mix, parameters, natural_ends)
    for mean in (256, 128, 64):
        yield Variant(
            f"default mix, answers of {mean} tokens in the mean", MIXED, parameters, partial(exponential, mean)
        )


def draws_of(name: str) -> Random:
    """Return a source of draws, always the same by its name."""
    return Random(name)  # noqa: S311 - nothing is kept secret


def shares(variant: Variant) -> tuple[float, list[float]]:
    """Return the truth, and what each seed's run reports as a part of it."""
    ends = variant.ends
    with contextlib.redirect_stdout(io.StringIO()):
        truth, _ = truth_of(variant.plan, variant.parameters, None if ends is None else ends(draws_of("truth")))
    found = []
    for seed in SEEDS:
        draws, noise, natural = (draws_of(f"{variant.name}/{seed}/{name}") for name in ("draws", "noise", "ends"))
        machine = Calibration(variant.plan, draws)
        replica = VirtualReplica(
            noisy(variant.parameters, noise), (ends or natural_ends)(natural), ignores_ends=ends is None
        )
        VirtualRun(machine, replica).run()
        swept = machine.result().sweep(Phase.KV)
        found.append(0.0 if swept is None or swept.knee is None else swept.knee.low / truth)
    return truth, sorted(found)


def main() -> None:
    """Print the table."""
    print("| replica and traffic | truth | reported, of the truth: least, quartiles, most | above the truth |")
    print("|---|---|---|---|")
    for variant in variants():
        truth, found = shares(variant)
        told = ", ".join(f"{found[place]:.3f}" for place in (0, len(found) // 4, 3 * len(found) // 4, -1))
        print(f"| {variant.name} | {truth:,.0f} | {told} | {sum(one > 1 for one in found)} of {len(found)} |")


if __name__ == "__main__":
    main()
