from math import inf
from typing import Any

import pytest

from llmshed.emulator.faults import FaultPlan, Faults, build_plan, parse_fault, read_order


def test_an_order_of_faults_replaces_the_plan() -> None:
    assert read_order({"die_after_events": 3, "times": 1}).plan == FaultPlan(die_after_events=3, times=1)


def test_an_empty_order_clears_the_plan() -> None:
    assert read_order({}).plan == FaultPlan()


def test_an_order_of_actions_leaves_the_plan() -> None:
    order = read_order({"stall_seconds": 2, "fail_batch": True, "refuse_seconds": 0.5})
    assert order.plan is None
    assert (order.stall_seconds, order.fail_batch, order.refuse_seconds) == (2.0, "CUDA out of memory", 0.5)


def test_a_stall_may_last_for_ever_and_a_failure_may_have_its_own_words() -> None:
    assert read_order({"stall_seconds": "forever"}).stall_seconds == inf
    assert read_order({"fail_batch": "boom"}).fail_batch == "boom"
    assert read_order({"fail_batch": False}).fail_batch is None


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ([], "an object is needed"),
        (None, "an object is needed"),
        ({"die": 1}, "unknown fault 'die'; accepted are: die_after_events"),
        ({"die_after_events": -1}, "die_after_events: .* not -1"),
        ({"die_after_events": True}, "die_after_events: .* not True"),
        ({"die_after_events": "3"}, "die_after_events"),
        ({"first_byte_delay_seconds": 1e9}, "first_byte_delay_seconds"),
        ({"overloaded": 1}, "overloaded"),
        ({"unhealthy": "yes"}, "unhealthy"),
        ({"stall_seconds": -1}, "stall_seconds: a number of seconds from 0 to 86400 is needed, not -1"),
        ({"stall_seconds": True}, "stall_seconds"),
        ({"refuse_seconds": "forever"}, "refuse_seconds"),
        ({"fail_batch": 3}, "fail_batch: true or a message"),
    ],
)
def test_other_orders_are_refused_with_what_is_accepted(body: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_order(body)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("die_after_events=3", ("die_after_events", 3)),
        ("first_byte_delay_seconds=0.5", ("first_byte_delay_seconds", 0.5)),
        ("overloaded", ("overloaded", True)),
        ("overloaded=false", ("overloaded", False)),
        ("unhealthy", ("unhealthy", True)),
        ("unhealthy=false", ("unhealthy", False)),
    ],
)
def test_the_command_line_writes_faults_as_name_and_value(text: str, pair: tuple[str, Any]) -> None:
    assert parse_fault(text) == pair
    build_plan(dict([pair]))


@pytest.mark.parametrize(
    "text", ["", "die", "die_after_events", "die_after_events=x", "stall_seconds=1", "overloaded=yes", "unhealthy=1"]
)
def test_the_command_line_refuses_other_faults(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_fault(text)


def test_a_plan_for_some_requests_is_used_up() -> None:
    faults = Faults(FaultPlan(die_after_events=3, idle_close_seconds=1, times=2))
    assert [faults.meet().die_after_events for _ in range(3)] == [3, 3, None]
    assert faults.meet().idle_close_seconds == 1


def test_a_plan_without_a_number_holds_for_all() -> None:
    faults = Faults(FaultPlan(overloaded=True))
    assert all(faults.meet().overloaded for _ in range(10))


def test_ill_health_is_no_fault_of_requests_and_outlasts_them() -> None:
    faults = Faults(FaultPlan(unhealthy=True, overloaded=True, times=1))
    assert faults.meet().overloaded
    spent = faults.meet()
    assert (spent.overloaded, spent.unhealthy, faults.plan.unhealthy) == (False, True, True)
