from random import Random

from llmshed.calibration.drawing import Draws
from llmshed.calibration.gates import TokensGate
from llmshed.calibration.plan import Objective, Plan, Shape
from llmshed.calibration.results import Phase
from llmshed.calibration.search import Search
from llmshed.calibration.summing import summed
from llmshed.calibration.sweep import Sweep, SweepTimes

PLAN = Plan((Shape(300, 100, "interactive"),), {"interactive": Objective(2.0, 0.1)})


def test_a_sweep_that_has_seen_nothing_tells_nothing() -> None:
    draws = Draws(PLAN.mix, Random(1))  # noqa: S311 - no secret
    sweep = Sweep(PLAN, TokensGate(), draws, Search(4000.0), SweepTimes(100.0), 10.0, aged=True)
    told = summed(Phase.KV, sweep, None, 15.0)
    assert (told.knee, told.broke, told.late, told.slow, told.pace_seconds) == (None, None, (), (), None)
    assert (told.requests, told.seconds) == (0, 5.0)
