"""Prompts that keep a replica busy excuse a refusal that room alone would not."""

import pytest

from fakes.scripted_gate import Stage, spec_of
from llmshed.admission.events import FirstToken
from llmshed.admission.request import Lane, PriorityClass

LOW = PriorityClass.LOW
BULK = Lane.BULK


def test_prompts_that_fill_a_replica_are_a_cause_of_their_own() -> None:
    """2,000 prompt tokens a second, of which a window of 500 may come at once."""
    stage = Stage()
    stage.run(1, 0.0, 5000)
    stage.wait(2, 0.0, 4000, rank=LOW)
    assert stage.refuse(3, 0.0, 2000) == (), "500 are owed"
    assert stage.refuse(4, 0.01, 2000) != (), "20 of them are paid off"


@pytest.mark.parametrize("over", ["first token", "ending", "not yet"])
def test_prompts_without_a_first_token_have_a_bound(over: str) -> None:
    stage = Stage(specs=(spec_of("a", prefill_inflight_tokens=600),))
    stage.run(1, 0.0, 5000)
    stage.wait(2, 0.0, 4000, rank=LOW)
    if over == "first token":
        stage.tell(FirstToken(1), 0.5)
    elif over == "ending":
        stage.end(1, 0.5, 5000)
        stage.run(5, 0.5, 5000)
        stage.tell(FirstToken(5), 0.6)
    assert (stage.refuse(3, 1.0, 2000) == ()) == (over == "not yet"), "500 and 200 are more than 600"


def test_bulk_beside_interactive_work_may_be_held_back_to_the_rate_of_its_floor() -> None:
    """A prompt of 300 tokens at a twentieth of 2,000 a second takes three seconds."""
    stage = Stage()
    stage.run(1, 0.0, 3000, lane=BULK)
    stage.wait(2, 0.0, 400, lane=BULK, rank=LOW)
    stage.wait(5, 0.0, 400, lane=BULK, rank=LOW)
    assert stage.refuse(3, 2.9, 1500, lane=BULK) == ()
    assert stage.refuse(4, 3.1, 1500, lane=BULK) != ()
