from collections.abc import Sequence

import pytest

from fakes.drills import drill_record, path_record
from fakes.rungs import cap, ladder_of
from llmshed.ladder.model import Ladder
from llmshed.ladder.records import DrillRecord
from llmshed.ladder.staleness import Why, common_facts, stale_rungs
from llmshed.profile.comparison import Facts

LADDER = ladder_of(
    {"action": "stop_bulk"},
    cap(400, largest_quality_gap=0.1),
    {"action": "smaller_model", "pool": "small", "largest_quality_gap": 0.2, "scope": {"classes": ["low"]}},
)
CAPPED = path_record("r2", ("cap_output 400",))
SMALLER = path_record("r3", ("cap_output 400", "smaller_model small"), pool="small", model="s", facts={"model_id": "s"})
NOW: dict[str, Facts] = {"main": {"model_id": "m", "model_revision": "1"}, "small": {"model_id": "s"}}


def stale(
    drills: Sequence[DrillRecord], ladder: Ladder = LADDER, pool: str = "main", **told: Facts
) -> list[tuple[str, Why]]:
    facts = NOW | told
    return [(one.rung, one.why) for one in stale_rungs(ladder, pool, drills, lambda name: facts.get(name, {}))]


def test_a_ladder_that_was_drilled_as_it_is_is_not_stale() -> None:
    assert stale([drill_record(CAPPED, SMALLER)]) == []


def test_a_rung_that_changes_answers_wants_a_drill_of_its_own_pool() -> None:
    missing = [("r2", Why.MISSING), ("r3", Why.MISSING)]
    assert stale([]) == missing
    assert stale([drill_record(CAPPED, SMALLER, pool="other")]) == missing
    assert stale([drill_record(CAPPED)]) == [("r3", Why.MISSING)]


def test_each_rung_is_judged_by_its_newest_drill_that_came_to_a_result() -> None:
    worse = path_record("r2", ("cap_output 400",), gap={"value": 0.3, "low": 0.2, "high": 0.4})
    told_nothing = path_record("r2", ("cap_output 400",), gap=None)
    older = drill_record(CAPPED, SMALLER)
    assert stale([drill_record(worse), older]) == [("r2", Why.BEYOND_GAP)]
    assert stale([older, drill_record(worse)]) == []
    assert stale([drill_record(told_nothing), older]) == []


def test_a_replaced_primary_makes_every_rung_stale() -> None:
    drills = [drill_record(CAPPED, SMALLER)]
    both = [("r2", Why.PRIMARY_CHANGED), ("r3", Why.PRIMARY_CHANGED)]
    assert stale(drills, main={"model_id": "m", "model_revision": "2"}) == both
    assert stale(drills, main={"model_id": "m"}) == []
    assert stale(drills, main={}) == []


def test_a_replaced_target_makes_the_rungs_stale_that_send_to_it() -> None:
    assert stale([drill_record(CAPPED, SMALLER)], small={"model_id": "t"}) == [("r3", Why.TARGET_CHANGED)]


def test_facts_by_which_no_answer_differs_make_nothing_stale() -> None:
    with_limits = path_record(None, facts={"limits.max_input_tokens": 1000, "gpu": "a"})
    record = drill_record(CAPPED, SMALLER).model_dump() | {"schema": "llmshed.drill/1"}
    record["paths"] = (with_limits, CAPPED, SMALLER)
    record.pop("schema_")
    drills = [DrillRecord.model_validate(record)]
    assert stale(drills, main={"limits.max_input_tokens": 2000, "gpu": "b"}) == []


@pytest.mark.parametrize(
    ("ladder", "changed"),
    [
        (ladder_of({"action": "stop_bulk"}, cap(300), {"action": "smaller_model", "pool": "small"}), ["r2", "r3"]),
        (ladder_of({"action": "stop_bulk"}, cap(400), {"action": "smaller_model", "pool": "tiny"}), ["r3"]),
        (ladder_of({"action": "stop_bulk"}, cap(400), {"action": "smaller_model", "pool": "small"}), []),
    ],
)
def test_a_path_that_does_something_else_now_was_not_drilled(ladder: Ladder, changed: list[str]) -> None:
    assert stale([drill_record(CAPPED, SMALLER)], ladder) == [(name, Why.RUNG_CHANGED) for name in changed]


def test_the_gap_is_held_against_what_is_agreed_on_now() -> None:
    stricter = ladder_of({"action": "stop_bulk"}, cap(400, largest_quality_gap=0.05))
    assert stale([drill_record(CAPPED)], stricter) == [("r2", Why.BEYOND_GAP)]
    (one,) = stale_rungs(stricter, "main", [drill_record(CAPPED)], lambda _: {})
    assert one.detail == "it loses 10.0% of the primary's result, and 5.0% is agreed on"


def test_replicas_that_differ_are_told_as_differing() -> None:
    one: Facts = {"model_id": "m", "model_revision": "1", "limits.max_input_tokens": 1}
    other: Facts = {"model_id": "m", "model_revision": "2", "dtype": "float16"}
    assert common_facts([]) == {}
    assert common_facts([one]) == {"model_id": "m", "model_revision": "1"}
    assert common_facts([one, other]) == common_facts([other, one]) == {
        "model_id": "m", "model_revision": "1 | 2", "dtype": "float16",
    }  # fmt: skip
