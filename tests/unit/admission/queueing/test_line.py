"""The whole queue; tests/property/test_lane_queue_machine.py holds it against a plain list."""

import pytest

from fakes.queued import waiting
from llmshed.admission.queueing.line import LaneQueue
from llmshed.admission.request import PriorityClass

HIGH, NORMAL, LOW = PriorityClass


@pytest.fixture
def queue() -> LaneQueue:
    """Of acme: 1 high, 2 normal, 3 and 4 low, the last of them continuing; one second apart."""
    queue = LaneQueue()
    for key, priority_class in ((1, HIGH), (2, NORMAL), (3, LOW), (4, LOW)):
        queue.join(waiting(key, "acme", float(key), priority_class=priority_class, continuing=key == 4), float(key))
    return queue


def keys(queue: LaneQueue, priority_class: PriorityClass, now: float) -> list[int]:
    return [one.key for one in queue.in_order(priority_class, now)]


def test_nobody_waits_twice(queue: LaneQueue) -> None:
    with pytest.raises(ValueError, match="waits already"):
        queue.join(waiting(2), 5.0)
    queue.leave(2)
    with pytest.raises(KeyError):
        queue.leave(2)
    assert (len(queue), 2 in queue, 3 in queue) == (3, False, True)
    assert [one.key for one in queue] == [1, 3, 4]
    assert queue.check() == []


def test_sums_in_all_and_by_class(queue: LaneQueue) -> None:
    assert queue.tokens == 4_000
    assert (queue.requests_of(LOW), queue.tokens_of(LOW), queue.input_tokens_of(LOW)) == (2, 2_000, 1_200)


def test_a_new_conversation_ages_past_continuing_ones_at_half_its_residence(queue: LaneQueue) -> None:
    assert keys(queue, LOW, 7.999) == [4, 3]
    assert keys(queue, LOW, 8.0) == [3, 4]  # 3 joined at 3, and may stay for 10
    assert queue.ahead_of("acme", 1.0, LOW, continuing=True) == (2_000, 1_200, 2)


def test_one_that_left_does_not_age(queue: LaneQueue) -> None:
    queue.leave(3)
    assert keys(queue, LOW, 9.0) == [4]


def test_expiry_is_exact_and_in_order(queue: LaneQueue) -> None:
    assert queue.next_expiry() == 11.0
    assert queue.take_expired(10.999) == []
    assert [one.key for one in queue.take_expired(12.0)] == [1, 2]
    assert (queue.next_expiry(), queue.oldest_joined_at()) == (13.0, 3.0)
    assert [one.key for one in queue.take_expired(99.0)] == [3, 4]
    assert (queue.next_expiry(), queue.oldest_joined_at(), len(queue)) == (None, None, 0)


def test_the_lowest_class_is_displaced_first_new_ones_before_continuing_ones(queue: LaneQueue) -> None:
    displaced = []
    while (one := queue.displaceable_by(HIGH, "bolt", 1.0)) is not None:
        displaced.append(one.key)
        queue.leave(one.key)
    assert displaced == [3, 4, 2]
    assert 1 in queue  # of the newcomer's own class, and no more than bolt's own would be


def test_no_class_displaces_one_above_it(queue: LaneQueue) -> None:
    queue.leave(3)
    queue.leave(4)
    assert queue.displaceable_by(LOW, "bolt", 1.0) is None


def test_service_in_any_class_counts_in_all(queue: LaneQueue) -> None:
    queue.join(waiting(5, "bolt", 5.0, priority_class=LOW), 5.0)
    assert keys(queue, LOW, 5.0) == [4, 5, 3]
    queue.served("acme", 1.0, 1_000)
    assert keys(queue, LOW, 5.0) == [5, 4, 3]
    queue.settle("acme", 1.0, -1_000, 6.0)
    assert keys(queue, LOW, 5.0) == [4, 5, 3]


def test_a_lower_class_that_starves_lends_its_level_to_nobody_above() -> None:
    queue = LaneQueue()
    queue.join(waiting(1, "bolt", priority_class=LOW), 0.0)
    queue.join(waiting(2, "acme", priority_class=HIGH), 0.0)
    for _ in range(100):
        queue.served("acme", 1.0, 1_000)
    queue.join(waiting(3, "core", 1.0, priority_class=HIGH), 1.0)
    queue.join(waiting(4, "core", 1.0, priority_class=HIGH), 1.0)
    assert keys(queue, HIGH, 1.0) == [2, 3, 4]


def test_what_was_in_flight_before_the_wait_gives_back_nothing_against_it() -> None:
    """acme fills a replica alone, then both wait; what its first requests did not use is no credit over bolt."""
    queue = LaneQueue()
    for _ in range(50):
        queue.served("acme", 1.0, 4_000)
    for key in range(6):
        queue.join(waiting(key, ("acme", "bolt")[key % 2], float(key)), float(key))
    order = []
    while len(queue):
        one = queue.leave(next(queue.in_order(NORMAL, 6.0)).key)
        queue.served(one.tenant, one.weight, one.total_tokens)
        queue.settle("acme", 1.0, -3_900, 0.0)
        order.append(one.tenant)
    assert order == ["acme", "bolt"] * 3


def test_one_that_moves_to_another_replica_keeps_its_place(queue: LaneQueue) -> None:
    queue.join(waiting(5, "acme", 5.0), 5.0)
    moved = queue.leave(2)
    moved.replica = "r2"
    queue.join(moved, 6.0)
    assert keys(queue, NORMAL, 6.0) == [2, 5]
    assert queue.check() == []


def test_check_sees_damage(queue: LaneQueue) -> None:
    one = next(one for one in queue if one.key == 1)
    queue._classes[HIGH].leave(one)
    queue._classes[LOW].join(one, 5.0)
    assert any("stands in low" in sentence for sentence in queue.check())
    queue._classes[LOW].leave(one)
    assert queue.check() == ["a request stands in no class"]
    queue._expiries.discard(1)
    assert any("are timed" in sentence for sentence in queue.check())
