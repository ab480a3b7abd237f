"""The gateway's own time, one request after the other."""

from fakes.stages import EDGES, stage, traced
from llmshed.whatif.door import Door
from llmshed.whatif.front import Front
from llmshed.whatif.visits import Try

DOOR = Door(stage(), EDGES)


def attempt(key: int, input_tokens: int) -> Try:
    return Try(key, DOOR.visit(traced(0.0, input_tokens), 0.0), 0.0)


def test_requests_are_done_in_order_each_after_the_one_before() -> None:
    front = Front(0.5, 0.01)
    front.take(attempt(1, 100), 10.0)  # 1.5 s of work
    front.take(attempt(2, 50), 10.0)  # 1.0 s
    front.take(attempt(3, 50), 20.0)  # idle again by then
    done = []
    while (at := front.next_at) is not None:
        done.append((at, front.pop().key))
    assert done == [(11.5, 1), (12.5, 2), (21.0, 3)]


def test_an_idle_gateway_has_nothing_to_do() -> None:
    assert Front(0.5, 0.01).next_at is None


def test_a_gateway_that_costs_nothing_passes_on_at_once() -> None:
    front = Front(0.0, 0.0)
    front.take(attempt(1, 100), 3.0)
    assert front.next_at == 3.0
