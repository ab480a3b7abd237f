"""The collector's settings in a gateway."""

import gc
from collections import deque
from collections.abc import Iterator

import pytest

from llmshed.gateway.daemon.memory import settle

PYTHONS_OWN = (700, 10, 10)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    gc.unfreeze()
    yield
    gc.freeze()
    gc.set_threshold(*thresholds)


def test_what_lives_already_is_left_out_of_later_collections() -> None:
    settle()
    assert gc.get_freeze_count() > len(gc.get_objects())


def test_full_collections_are_rarer_than_pythons_own_and_young_ones_smaller() -> None:
    young, middle, full = PYTHONS_OWN
    settle()
    settled = gc.get_threshold()
    assert settled[0] * settled[1] < young * middle
    assert settled[2] > full
    assert gc.isenabled()


class Circle:
    """An object that only a collection frees, and how many of its kind there are."""

    here = 0

    def __init__(self) -> None:
        self.itself = self
        Circle.here += 1

    def __del__(self) -> None:
        Circle.here -= 1


@pytest.mark.slow
def test_circles_that_outlive_young_collections_are_bounded_in_number() -> None:
    """Each is held until both kinds of young collections have passed it by, as a connection of some minutes is."""
    settle()
    young, middle, full = gc.get_threshold()
    held: deque[Circle] = deque(maxlen=2 * young * middle)
    most = 0
    for _ in range(1_200_000):
        held.append(Circle())
        most = max(most, Circle.here)
    assert most < (young + 1) * (middle + 2) * (full + 2) + 2 * young * middle
    assert Circle.here < most
