"""The gate's own words against what the engines hold."""

from fakes.plain_replica import PlainReplica
from fakes.stages import EDGES, stage, traced
from llmshed.admission.actions import Dispatch, Released
from llmshed.admission.budget import Reservation
from llmshed.admission.verdict import Decision, Verdict
from llmshed.whatif.belief import MOST_SENTENCES, Belief
from llmshed.whatif.door import Door
from llmshed.whatif.replicas import Replicas
from llmshed.whatif.visits import Try

DOOR = Door(stage(), EDGES)


def dispatch(key: int, replica: str = "a", tokens: int = 100) -> Dispatch:
    return Dispatch(key, replica, Verdict(Decision.ADMIT, reservation=Reservation(tokens, 0, 0, 1)))


def replicas_with(*keys: int) -> Replicas:
    """One engine with these requests, each of which holds 10 + 90 tokens."""
    replicas = Replicas({"a": PlainReplica(seats=10, permits=10)})
    for key in keys:
        replicas["a"].send(Try(key, DOOR.visit(traced(0.0), 0.0), 0.0), 90, (key,), 0.0)
    return replicas


def test_a_true_ledger_has_no_differences() -> None:
    belief = Belief()
    belief.dispatched(dispatch(1))
    belief.dispatched(dispatch(2))
    belief.look(replicas_with(1, 2))
    belief.released(Released(1, "a", 100))
    belief.look(replicas_with(2))
    truth = belief.truth()
    assert (truth.looks, truth.only_in_gate, truth.only_in_engine, truth.looks_above_reserved) == (2, 0, 0, 0)
    assert truth.mean_reserved_tokens == truth.mean_held_tokens == 150
    assert truth.broken_invariants_count == 0


def test_what_only_one_side_has_is_counted() -> None:
    belief = Belief()
    belief.dispatched(dispatch(1))
    belief.dispatched(dispatch(2))
    belief.look(replicas_with(2, 3, 4))
    assert (belief.truth().only_in_gate, belief.truth().only_in_engine) == (1, 2)


def test_a_request_on_another_replica_than_believed_is_missed_on_both_sides() -> None:
    belief = Belief()
    belief.dispatched(dispatch(1, "b"))
    belief.look(replicas_with(1))
    assert (belief.truth().only_in_gate, belief.truth().only_in_engine) == (1, 1)


def test_kv_beyond_what_was_reserved_is_seen() -> None:
    belief = Belief()
    belief.dispatched(dispatch(1, tokens=70))
    belief.look(replicas_with(1))
    assert (belief.truth().looks_above_reserved, belief.truth().most_above_reserved_tokens) == (1, 30)


def test_words_that_contradict_each_other_are_told() -> None:
    belief = Belief()
    belief.dispatched(dispatch(1))
    belief.dispatched(dispatch(1))
    belief.released(Released(7, "a", 100))
    belief.dispatched(dispatch(2))
    belief.released(Released(2, "b", 100))
    assert belief.truth().broken_invariants == (
        "request 1 was dispatched twice",
        "request 7 was released and not dispatched",
        "request 2 was dispatched to a and released on b",
    )


def test_a_flood_of_sentences_is_counted_and_not_kept() -> None:
    belief = Belief()
    for number in range(100):
        belief.note_broken((f"one {number}", f"two {number}"))
    truth = belief.truth()
    assert truth.broken_invariants_count == 200
    assert len(truth.broken_invariants) == MOST_SENTENCES
    assert truth.broken_invariants[:3] == ("one 0", "two 0", "one 1")
