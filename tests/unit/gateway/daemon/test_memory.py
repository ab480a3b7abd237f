"""The collector's settings in a gateway."""

import gc
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
