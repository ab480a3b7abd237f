"""Places of connections: newcomers get in, idle ones go in the order of their idleness, those at work stay."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.gateway.door.crowding import MOST_LOOKED_AT, Places
from llmshed.observability.metrics import Displaced


@dataclass(slots=True, eq=False)
class Connection:
    """A connection that only knows whether it is at work and whether it was closed."""

    working: bool = False
    closed: bool = False

    @property
    def may_go(self) -> bool:
        return not self.working

    def force_close(self) -> None:
        self.closed = True


@dataclass(slots=True)
class Listener:
    """Places for so many, and what was told of them."""

    most: int
    told: list[Displaced] = field(default_factory=list)
    places: Places = field(init=False)

    def __post_init__(self) -> None:
        self.places = Places(self.most, self.told.append)

    def comes(self, *, working: bool = False) -> Connection:
        connection = Connection()
        self.places.take(connection)
        connection.working = working
        return connection


@pytest.fixture
def listening() -> Callable[[int], Listener]:
    return Listener


def test_nobody_goes_while_there_is_room(listening: Callable[[int], Listener]) -> None:
    listener = listening(3)
    assert not any(one.closed for one in [listener.comes() for _ in range(3)])
    assert listener.told == []


def test_the_longest_idle_goes_first(listening: Callable[[int], Listener]) -> None:
    listener = listening(3)
    first, second, third = (listener.comes() for _ in range(3))
    listener.places.worked(first)
    listener.comes()
    assert (first.closed, second.closed, third.closed) == (False, True, False)
    listener.comes()
    assert (first.closed, third.closed) == (False, True)
    assert listener.told == [Displaced.IDLE] * 2


def test_who_is_at_work_stays_and_the_newcomer_goes(listening: Callable[[int], Listener]) -> None:
    listener = listening(2)
    at_work = [listener.comes(working=True) for _ in range(2)]
    newcomer = listener.comes()
    assert newcomer.closed
    assert not any(one.closed for one in at_work)
    assert listener.told == [Displaced.NEWCOMER]
    assert len(listener.places) == 2


def test_a_place_that_was_left_is_free(listening: Callable[[int], Listener]) -> None:
    listener = listening(1)
    first = listener.comes()
    listener.places.leave(first)
    listener.places.leave(first)
    second = listener.comes()
    assert not second.closed
    listener.places.worked(first)  # its handler ended after its connection
    assert len(listener.places) == 1


def test_a_look_passes_over_a_bounded_number(listening: Callable[[int], Listener]) -> None:
    listener = listening(3 * MOST_LOOKED_AT)
    at_work = [listener.comes(working=True) for _ in range(2 * MOST_LOOKED_AT)]
    idle = [listener.comes() for _ in range(MOST_LOOKED_AT)]
    assert [listener.comes().closed for _ in range(3)] == [True, True, False]
    assert [one.closed for one in idle[:2]] == [True, False]
    assert not any(one.closed for one in at_work)


@given(
    most=st.integers(1, 5),
    steps=st.lists(st.tuples(st.sampled_from(["comes", "works", "rests", "leaves"]), st.integers(0, 9))),
)
def test_there_are_never_more_than_places_and_nobody_at_work_is_closed(most: int, steps: list[tuple[str, int]]) -> None:
    listener = Listener(most)
    here: list[Connection] = []
    for step, number in steps:
        one = here[number % len(here)] if here else None
        match step:
            case "comes":
                here.append(listener.comes())
            case "works" if one is not None:
                one.working = True
            case "rests" if one is not None:
                one.working = False
                listener.places.worked(one)
            case "leaves" if one is not None:
                one.working = False
                listener.places.leave(one)
                here.remove(one)
        assert not any(one.closed and one.working for one in here)
        here = [one for one in here if not one.closed]
        assert len(here) == len(listener.places) <= most
