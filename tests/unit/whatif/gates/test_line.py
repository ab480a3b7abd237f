"""Waiting work: order, ends and leaving, against a sorted list."""

import random
from math import inf

from fakes.knocks import work
from fakes.stages import stage
from llmshed.whatif.gates.line import Line

SETTING = stage()


def test_the_least_rank_is_served_first_and_the_greatest_is_last() -> None:
    line = Line(lambda one: (one.request.input_tokens, one.order))
    for key, size in ((1, 300), (2, 100), (3, 200), (4, 100)):
        line.join(work(SETTING, key, size), inf)
    assert line.last().key == 1
    served = []
    while (first := line.first()) is not None:
        served.append(line.leave(first.key).key)
    assert served == [2, 4, 3, 1]
    assert len(line) == 0
    assert line.next_end() is None


def test_one_who_left_is_neither_served_nor_timed_nor_counted() -> None:
    line = Line(lambda one: (one.order,))
    for key in (1, 2, 3):
        line.join(work(SETTING, key), 10.0 * key)
    line.leave(1)
    assert (len(line), 1 in line, 2 in line) == (2, False, True)
    first = line.first()
    assert first is not None
    assert first.key == 2
    assert line.next_end() == 20.0
    assert [one.key for one in line] == [2, 3]


def test_waits_end_in_order_of_their_ends_and_take_their_work_out() -> None:
    line = Line(lambda one: (one.order,))
    for key, until in ((1, 5.0), (2, 3.0), (3, 4.0), (4, inf)):
        line.join(work(SETTING, key), until)
    assert line.take_overdue(2.9) == []
    assert [one.key for one in line.take_overdue(4.0)] == [2, 3]
    assert [one.key for one in line] == [1, 4]
    assert [one.key for one in line.take_overdue(1e12)] == [1]


def test_any_order_of_joining_and_leaving_serves_as_a_sorted_list() -> None:
    rng = random.Random(4)  # noqa: S311 - one seed, one test
    line = Line(lambda one: (one.request.input_tokens, one.order))
    model: dict[int, tuple[int, int]] = {}
    for key in range(1, 400):
        if model and rng.random() < 0.45:
            gone = rng.choice(sorted(model))
            assert line.leave(gone).key == gone
            del model[gone]
        model[key] = (rng.randint(1, 50), key)
        line.join(work(SETTING, key, model[key][0]), inf)
        first = line.first()
        assert first is not None
        assert model[first.key] == min(model.values())
        assert model[line.last().key] == max(model.values())
        assert len(line) == len(model)
