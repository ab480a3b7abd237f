import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmshed.admission.queueing.timeline import GARBAGE_KEPT, Timeline


@pytest.fixture
def timeline() -> Timeline:
    timeline = Timeline()
    for key, at in ((1, 5.0), (2, 3.0), (3, 3.0), (4, 9.0)):
        timeline.add(key, at)
    return timeline


def test_what_is_due_comes_least_first_and_once(timeline: Timeline) -> None:
    assert timeline.take_due(2.999) == []
    assert timeline.take_due(5.0) == [2, 3, 1]
    assert timeline.take_due(5.0) == []
    assert (timeline.first(), len(timeline)) == (9.0, 1)


def test_a_withdrawn_key_is_never_due(timeline: Timeline) -> None:
    timeline.discard(2)
    timeline.discard(2)
    timeline.discard(77)
    assert timeline.take_due(4.0) == [3]


def test_a_key_may_be_set_anew_after_it_was_withdrawn(timeline: Timeline) -> None:
    timeline.discard(2)
    timeline.add(2, 7.0)
    assert timeline.take_due(8.0) == [3, 1, 2]
    timeline.discard(4)
    timeline.add(4, 9.0)
    assert timeline.take_due(9.0) == [4]
    assert timeline.first() is None


def test_garbage_is_bounded() -> None:
    timeline = Timeline()
    timeline.add(0, 0.0)  # stays on top, so nothing below it is ever popped
    for key in range(1, 2_000):
        timeline.add(key, float(key))
        timeline.discard(key)
        assert len(timeline._heap) <= GARBAGE_KEPT + 3
    assert timeline.check() == []


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(("add", "discard", "take")), st.integers(0, 9), st.integers(0, 9))))
def test_it_is_a_dictionary_read_by_its_least_value(steps: list[tuple[str, int, int]]) -> None:
    timeline, plain = Timeline(), dict[int, float]()
    for step, key, at in steps:
        if step == "add" and key not in plain:
            timeline.add(key, float(at))
            plain[key] = float(at)
        elif step == "discard":
            timeline.discard(key)
            plain.pop(key, None)
        elif step == "take":
            due = sorted((value, name) for name, value in plain.items() if value <= at)
            assert timeline.take_due(float(at)) == [name for _, name in due]
            plain = {name: value for name, value in plain.items() if value > at}
        assert timeline.first() == min(plain.values(), default=None)
        assert len(timeline) == len(plain)
        assert timeline.check() == []


def test_check_sees_a_key_that_will_never_come(timeline: Timeline) -> None:
    timeline._live[8] = 1.0
    assert any("key 8" in sentence for sentence in timeline.check())
