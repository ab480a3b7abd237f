"""The transition table is whole: every pair that can be, each with a move that leads where it says."""

import pytest

from llmshed.ladder.table import TABLE, Move, Place, Shown, place

RISES = {Shown.ABOVE, Shown.LONG_ABOVE}
FALLS = {Shown.CALM, Shown.LONG_CALM, Shown.CROWDED}


def test_it_has_every_pair_but_those_that_cannot_be() -> None:
    cannot = {(Place.GROUND, shown) for shown in FALLS} | {(Place.LAST, shown) for shown in RISES}
    assert set(TABLE) == {(one, shown) for one in Place for shown in Shown} - cannot


def test_a_step_leads_away_and_all_else_stays() -> None:
    for (stood, _), (move, leads_to) in TABLE.items():
        match move:
            case Move.CLIMB:
                assert leads_to == (Place.RUNG, Place.LAST)
            case Move.BACK:
                assert leads_to == (Place.GROUND, Place.RUNG)
            case _:
                assert leads_to == (stood,)


@pytest.mark.parametrize(
    ("rung", "rungs", "expected"),
    [(0, 1, Place.GROUND), (1, 1, Place.LAST), (1, 2, Place.RUNG), (2, 2, Place.LAST), (0, 2, Place.GROUND)],
)
def test_the_place_of_a_rung(rung: int, rungs: int, expected: Place) -> None:
    assert place(rung, rungs) is expected
