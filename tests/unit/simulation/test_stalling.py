from math import inf

from llmshed.simulation.stalling import Stalling


def test_without_a_stall_all_happens_when_it_is_due() -> None:
    stalling = Stalling()
    assert stalling.earliest(3.0) == 3.0
    assert stalling.earliest(None) is None
    stalling.end(5.0)
    assert stalling.earliest(3.0) == 3.0
    assert stalling.is_over(-1e9)


def test_what_is_due_in_a_stall_happens_at_its_end_and_what_is_due_later_is_not_moved() -> None:
    stalling = Stalling()
    stalling.begin(2.0, 4.0)
    assert (stalling.earliest(3.0), stalling.earliest(7.0)) == (6.0, 7.0)
    assert (stalling.is_over(5.9), stalling.is_over(6.0)) == (False, True)


def test_a_shorter_stall_does_not_end_a_longer_one() -> None:
    stalling = Stalling()
    stalling.begin(2.0, 10.0)
    stalling.begin(3.0, 1.0)
    assert stalling.earliest(3.0) == 12.0


def test_an_endless_stall_lets_nothing_happen_until_it_is_ended() -> None:
    stalling = Stalling()
    stalling.begin(2.0, inf)
    assert stalling.earliest(3.0) is None
    stalling.end(8.0)
    assert stalling.earliest(3.0) == 8.0
