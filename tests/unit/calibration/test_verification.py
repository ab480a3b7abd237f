"""What two levels say of a ceiling, and the run that holds them on a simulated replica."""

from random import Random

import pytest
from virtual_replica import VirtualReplica
from virtual_run import VirtualRun

from llmshed.calibration import Objective, Phase, Plan, Shape
from llmshed.calibration.events import StopReason
from llmshed.calibration.observations import Knee
from llmshed.calibration.search import Stage
from llmshed.calibration.verification import Conclusion, Level, Share, TwoLevels, Verification, Verified
from llmshed.simulation.parameters import ReplicaParameters

KEPT, BROKEN, OPEN = Share(400, 2), Share(400, 60), Share(20, 1)
NONE = Share(0, 0)


def level(late: Share, slow: Share = KEPT) -> Level:
    return Level(1000.0, late, slow)


@pytest.mark.parametrize(
    ("late", "slow", "kept"),
    [
        (KEPT, KEPT, True),
        (BROKEN, KEPT, False),
        (KEPT, BROKEN, False),
        (BROKEN, OPEN, False),
        (KEPT, OPEN, None),
        (KEPT, NONE, None),
        (NONE, NONE, None),
    ],
)
def test_a_level_is_kept_where_both_intervals_are_below_the_allowed_share(
    late: Share,
    slow: Share,
    kept: bool | None,  # noqa: FBT001 - a case of the table above
) -> None:
    assert level(late, slow).kept is kept


def test_the_interval_is_that_of_wilson() -> None:
    """2 of 400 at 1.28 deviations, by hand: (2 + 0.8192) / 401.6384 -+ 1.28 / 401.6384 * sqrt(1.99 + 0.4096)."""
    assert KEPT.interval == pytest.approx((0.0020825, 0.0119561), abs=1e-6)
    assert NONE.interval == (0.0, 1.0)


@pytest.mark.parametrize(
    ("ceiling", "above", "conclusion"),
    [
        (KEPT, BROKEN, Conclusion.HOLDS),
        (KEPT, OPEN, Conclusion.HOLDS),
        (KEPT, NONE, Conclusion.HOLDS),
        (KEPT, KEPT, Conclusion.TOO_LOW),
        (BROKEN, NONE, Conclusion.DOES_NOT_HOLD),
        (OPEN, BROKEN, Conclusion.UNSURE),
        (OPEN, KEPT, Conclusion.UNSURE),
        (NONE, NONE, Conclusion.UNSURE),
    ],
)
def test_both_levels_give_the_conclusion(ceiling: Share, above: Share, conclusion: Conclusion) -> None:
    assert Verified(level(ceiling), level(above)).conclusion is conclusion


def test_above_a_ceiling_that_broke_nothing_is_tried() -> None:
    levels = TwoLevels(1000.0, 1100.0)
    levels.return_to(Knee(0.0, 970.0, 1000.0), enough=True)
    assert (levels.level, levels.stage) == (1000.0, Stage.DONE)


def test_above_a_ceiling_that_held_one_level_is_tried() -> None:
    levels = TwoLevels(1000.0, 1100.0)
    levels.return_to(Knee(995.0, 995.0, None), enough=False)
    assert (levels.level, levels.stage) == (1100.0, Stage.RETURN)
    levels.return_to(Knee(995.0, 1090.0, 1100.0), enough=False)
    assert levels.stage is Stage.DONE
    assert levels.knee() is None


PLAN = Plan(
    (Shape(300, 60, "interactive"), Shape(100, 120, "interactive")),
    {"interactive": Objective(2.0, 0.1)},
    max_duration_seconds=90.0,
    max_input_tokens=8000,
)


def verification(ceiling_tokens: int, high_tokens: int | None) -> Verification:
    return Verification(PLAN, Random(1), ceiling_tokens, high_tokens)  # noqa: S311 - no secret


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ceiling_tokens", "conclusion"),
    [(52_000, Conclusion.HOLDS), (60_000, Conclusion.DOES_NOT_HOLD), (40_000, Conclusion.TOO_LOW)],
)
def test_a_ceiling_is_told_from_one_beyond_the_knee_and_one_far_below(
    ceiling_tokens: int, conclusion: Conclusion
) -> None:
    """The replica's 49,151 tokens of KV, and those of requests that it lets wait for less than their bound."""
    machine = verification(ceiling_tokens, None)
    replica = VirtualReplica(ReplicaParameters(max_concurrent_requests=1024), lambda ask: ask.ceiling_tokens)
    ran = VirtualRun(machine, replica).run()
    assert machine.verified().conclusion is conclusion
    assert ran.stop.reason in {StopReason.DONE, StopReason.TIME, StopReason.NOTHING_HOLDS}
    assert ran.seconds <= PLAN.max_duration_seconds
    assert [sweep.phase for sweep in machine.result().sweeps] == [Phase.KV]
    assert machine.result().idle is not None
    assert machine.check() == ()


def test_before_anything_was_sent_nothing_is_said() -> None:
    verified = verification(1000, 1200).verified()
    assert verified.conclusion is Conclusion.UNSURE
    assert [verified.ceiling.tokens, verified.above.tokens] == pytest.approx([1000.0, 1260.0])
    assert verification(1000, 1010).verified().above.tokens == pytest.approx(1100.0)
