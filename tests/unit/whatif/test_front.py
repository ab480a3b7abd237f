"""The gateway's own time, one request after the other."""

import pytest

from fakes.stages import EDGES, stage, traced
from llmshed.whatif.door import Door
from llmshed.whatif.front import Front
from llmshed.whatif.visits import Try

DOOR = Door(stage(), EDGES)


def attempt(key: int, input_tokens: int) -> Try:
    return Try(key, DOOR.visit(traced(0.0, input_tokens), 0.0), 0.0)


def test_requests_are_done_in_order_each_after_the_one_before() -> None:
    front = Front(0.5, 0.01, 0.0)
    front.take(attempt(1, 100), 10.0, 0.0)  # 1.5 s of work
    front.take(attempt(2, 50), 10.0, 0.0)  # 1.0 s
    front.take(attempt(3, 50), 20.0, 0.0)  # idle again by then
    done = []
    while (at := front.next_at) is not None:
        done.append((at, front.pop().key))
    assert done == [(11.5, 1), (12.5, 2), (21.0, 3)]


def test_an_idle_gateway_has_nothing_to_do() -> None:
    assert Front(0.5, 0.01, 0.001).next_at is None


def test_a_gateway_that_costs_nothing_passes_on_at_once() -> None:
    front = Front(0.0, 0.0, 0.0)
    front.take(attempt(1, 100), 3.0, 1e9)
    assert front.next_at == 3.0


def test_tokens_that_are_relayed_hold_up_whoever_arrives_behind_them() -> None:
    front = Front(0.5, 0.0, 0.01)
    front.take(attempt(1, 1), 10.0, 0.0)  # done at 10.5
    front.take(attempt(2, 1), 11.0, 200.0)  # 2 s of tokens came behind it: done with them at 12.5
    front.take(attempt(3, 1), 12.0, 250.0)  # 0.5 s more behind the second, which is done at 13.0
    done = []
    while (at := front.next_at) is not None:
        done.append((at, front.pop().key))
    assert done == [(10.5, 1), (13.0, 2), (14.0, 3)]


def test_a_gateway_that_keeps_up_with_its_tokens_holds_nobody_up() -> None:
    front = Front(0.5, 0.0, 0.01)
    for second in range(1, 5):
        front.take(attempt(second, 1), float(second), 40.0 * second)  # 0.4 s of tokens and 0.5 s of work a second
        assert front.next_at == second + 0.5
        front.pop()


def test_a_gateway_that_does_not_keep_up_falls_behind_by_the_difference() -> None:
    front = Front(0.0, 0.0, 0.01)
    for second in range(5):
        front.take(attempt(second, 1), float(second), 150.0 * second)
        assert front.next_at == 1.5 * second
        front.pop()


def test_its_busy_share_counts_what_is_done_and_not_what_is_left() -> None:
    front = Front(0.5, 0.0, 0.01)
    assert front.busy_share(0.0, 0.0) == 0.0
    front.take(attempt(1, 1), 0.0, 0.0)
    front.take(attempt(2, 1), 1.0, 0.0)
    assert front.busy_share(2.0, 0.0) == 0.5
    assert front.busy_share(2.0, 30.0) == pytest.approx(0.65)
    assert front.busy_share(2.0, 500.0) == 0.75, "since 1.0 s without a rest"
