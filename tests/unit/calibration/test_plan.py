import pytest

from llmshed.calibration.plan import Objective, Plan, Shape

SHAPE = Shape(300, 100, "interactive")
OBJECTIVES = {"interactive": Objective(2.0, 0.1)}


def test_the_engine_has_its_share_of_the_first_token_and_all_of_the_pace() -> None:
    plan = Plan((SHAPE,), OBJECTIVES)
    assert plan.ttft_bound_seconds("interactive") == pytest.approx(1.4)
    assert plan.tpot_bound_seconds("interactive") == pytest.approx(0.1)
    assert SHAPE.reserved_tokens == 400


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"mix": ()}, "no request"),
        ({"mix": (Shape(1, 1, "bulk"),)}, "no objective is given for the lane bulk"),
        ({"mix": (Shape(0, 1, "interactive"),)}, "at least 1 token"),
        ({"engine_share_ratio": 0.0}, "engine share"),
        ({"engine_share_ratio": 1.1}, "engine share"),
        ({"max_duration_seconds": 0.0}, "duration"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(changes: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Plan(**{"mix": (SHAPE,), "objectives": OBJECTIVES} | changes)  # type: ignore[arg-type]
