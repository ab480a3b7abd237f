import pytest

from fakes.queued import waiting
from llmshed.admission.queueing.tenant_line import Ahead, TenantLine


@pytest.fixture
def line() -> TenantLine:
    """New 1, continuing 2, new 3, continuing 4, in this order of arrival, of 1,000 to 4,000 tokens."""
    line = TenantLine(2.0)
    for key in (1, 2, 3, 4):
        line.add(waiting(key, joined_at=float(key), input_tokens=1_000 * key - 400, continuing=key % 2 == 0))
    return line


def keys(line: TenantLine) -> list[int]:
    return [one.key for one in line]


def test_continuing_ones_first_then_by_arrival(line: TenantLine) -> None:
    assert keys(line) == [2, 4, 1, 3]
    assert line.head is not None
    assert line.head.key == 2


def test_an_aged_one_stands_among_continuing_ones_by_arrival(line: TenantLine) -> None:
    one, three = list(line.fresh)
    line.age(three)
    assert keys(line) == [2, 3, 4, 1]
    line.age(one)
    assert keys(line) == [1, 2, 3, 4]
    assert line.head is one
    line.remove(one)
    assert keys(line) == [2, 3, 4]
    assert line.check() == []


def test_sums_by_what_a_newcomer_stands_behind(line: TenantLine) -> None:
    assert (line.tokens, line.weighted_tokens, len(line)) == (10_000, 5_000.0, 4)
    assert line.ahead_of(continuing=False) == Ahead(10_000, 8_400, 4)
    assert line.ahead_of(continuing=True) == Ahead(6_000, 5_200, 2)
    line.age(next(iter(line.fresh)))
    assert line.ahead_of(continuing=True) == Ahead(7_000, 5_800, 3)


def test_the_newest_new_one_is_displaced_before_any_continuing_one(line: TenantLine) -> None:
    line.age(next(iter(line.fresh)))
    displaced = []
    while (one := line.first_to_displace) is not None:
        displaced.append(one.key)
        line.remove(one)
    assert displaced == [3, 1, 4, 2]
    assert line.head is None


def test_one_that_aged_before_an_older_one_is_displaced_first() -> None:
    """A reload shortened the lane's residence between two arrivals, so the second ages first."""
    line = TenantLine(1.0)
    first, second = waiting(1, joined_at=0.0, residence_seconds=60.0), waiting(2, joined_at=1.0, residence_seconds=2.0)
    line.add(first)
    line.add(second)
    line.age(second)
    assert keys(line) == [2, 1]
    assert line.first_to_displace is second
    line.add(waiting(3, joined_at=2.0))
    assert line.first_to_displace is not None
    assert line.first_to_displace.key == 3


def test_the_largest_is_known_after_it_left(line: TenantLine) -> None:
    sizes = []
    while line.head is not None:
        sizes.append(line.largest_tokens)
        line.remove(max(line, key=lambda one: one.total_tokens))
    assert [*sizes, line.largest_tokens] == [4_000, 3_000, 2_000, 1_000, 0]


@pytest.mark.parametrize("damage", ["row", "largest", "head"])
def test_check_sees_damage(line: TenantLine, damage: str) -> None:
    if damage == "row":
        line.aged.add(waiting(9, continuing=True))
    elif damage == "largest":
        line.largest_tokens = 9_000
    else:
        line.head = line.fresh.oldest
    assert line.check()
