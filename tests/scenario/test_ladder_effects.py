"""What each rung of the core brings: the same burst before one replica with and without it, in virtual time."""

import pytest
from rungs import CASES, CROWDS, Brought, brought

from llmshed.admission.request import PriorityClass

HIGH, NORMAL, LOW = PriorityClass
SECONDS = 40.0


@pytest.fixture(scope="module")
def cases() -> dict[str, Brought]:
    crowd = CROWDS["long answers"]
    wanted = ("no rung", "stop bulk", "cap output", "stop bulk, shed low")
    return {name: brought(CASES[name], crowd, SECONDS) for name in wanted}


@pytest.mark.slow
def test_stopping_bulk_leaves_its_room_to_interactive_work(cases: dict[str, Brought]) -> None:
    before, after = cases["no rung"], cases["stop bulk"]
    assert sum(after.kept.values()) > sum(before.kept.values())
    assert after.ttft_p95_seconds <= before.ttft_p95_seconds
    assert after.degraded_share == 0.0


@pytest.mark.slow
def test_lower_ceilings_serve_more_with_fewer_tokens(cases: dict[str, Brought]) -> None:
    before, after = cases["no rung"], cases["cap output"]
    assert after.goodput > 1.3 * before.goodput
    assert after.output_tokens_per_second < before.output_tokens_per_second
    assert after.degraded_share > 0.5


@pytest.mark.slow
def test_shedding_the_lowest_class_leaves_its_room_to_the_others(cases: dict[str, Brought]) -> None:
    before, after = cases["stop bulk"], cases["stop bulk, shed low"]
    assert after.kept[LOW] == 0.0
    assert after.kept[HIGH] > before.kept[HIGH]
    assert after.kept[NORMAL] > before.kept[NORMAL]
