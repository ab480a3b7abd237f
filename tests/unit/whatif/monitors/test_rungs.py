"""Who is taken where a rung sheds: broken and kept by a gate that says what it is told."""

from typing import Any

from fakes.scripted_gate import Stage, policy_of
from llmshed.admission.actions import RungChanged
from llmshed.admission.events import PolicyChanged, Tick
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, PriorityClass
from llmshed.ladder.standing import Cause, Standing, Step

HIGH, NORMAL, LOW = PriorityClass
SHED: dict[str, Any] = {"reason": Reason.SHED_PRIORITY, "rung": "shed-normal", "pool": "main"}


def test_nobody_lower_is_taken_in_the_place_of_whom_a_rung_shed() -> None:
    stage = Stage()
    assert stage.refuse(1, 0.0, 1_000, **SHED) == ()
    stage.run(2, 1.0, 1_001, rank=LOW)
    assert stage.broken() == (), "it would not fit in that place"
    stage.run(3, 1.0, 1_000)
    stage.run(4, 1.0, 100, rank=HIGH)
    assert stage.broken() == (), "none of them is of a lower rank"
    stage.run(5, 1.0, 1_000, rank=LOW)
    assert stage.broken() == (
        "request 5 of rank 2 was taken in pool main, in whose place request 1 of rank 1 was shed",
    )
    stage.wait(6, 1.0, 10, Lane.BULK)
    assert len(stage.broken()) == 1, "nor may it wait there"


def test_who_is_sent_out_of_the_queue_was_shed_too() -> None:
    stage = Stage()
    stage.wait(1, 0.0, 1_000)
    assert stage.evict(1, 1.0, 1_000, **SHED) == ()
    stage.run(2, 1.0, 1_000, rank=LOW)
    assert len(stage.broken()) == 1


def test_what_was_shed_before_a_step_or_a_reload_says_nothing_of_what_is_taken_after_it() -> None:
    stage = Stage()
    standing = Standing("small@1", 0, None, (), 0, 0, 0)
    stage.refuse(1, 0.0, 1_000, **SHED)
    stage.tell(Tick(), 1.0, RungChanged(Step("main", 2, 1, Cause.DESCENDED, standing)))
    stage.run(2, 1.0, 1_000, rank=LOW)
    stage.refuse(3, 2.0, 1_000, **SHED)
    stage.tell(PolicyChanged(policy_of()), 3.0)
    stage.run(4, 3.0, 1_000, rank=LOW)
    assert stage.broken() == ()


def test_who_gave_its_place_in_a_queue_away_was_shed_by_no_rung() -> None:
    stage = Stage()
    stage.wait(1, 0.0, 1_000)
    assert stage.evict(1, 1.0, 1_000, Reason.SHED_PRIORITY, pool="main") == ()
    stage.run(2, 1.0, 1_000, rank=LOW)
    assert stage.broken() == ()
