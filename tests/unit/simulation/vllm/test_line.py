"""The order of waiting sequences under either policy."""

from llmshed.simulation.sequences import Sequence
from llmshed.simulation.vllm.blocks import Holding
from llmshed.simulation.vllm.entry import VllmEntry
from llmshed.simulation.vllm.line import WaitingLine
from llmshed.simulation.vllm.parameters import SchedulingPolicy


def waiting(key: int, priority: int = 0) -> VllmEntry:
    return VllmEntry(Sequence(key, 10, 10, priority=priority), 10, 10, key, 0.0, Holding())


def served(line: WaitingLine) -> list[int]:
    return [line.pop().key for _ in range(len(line))]


def test_first_come_first_served_whatever_the_priority() -> None:
    line = WaitingLine(SchedulingPolicy.FCFS)
    for key, priority in ((1, 5), (2, 0), (3, 3)):
        line.join(waiting(key, priority))
    assert served(line) == [1, 2, 3]


def test_preempted_ones_wait_in_front_and_the_last_preempted_foremost() -> None:
    line = WaitingLine(SchedulingPolicy.FCFS)
    line.join(waiting(4))
    line.put_back(waiting(3))
    line.put_back(waiting(2))
    line.join(waiting(5))
    assert [entry.key for entry in line] == [2, 3, 4, 5]
    assert served(line) == [2, 3, 4, 5]


def test_the_lower_priority_number_is_served_first_and_equal_ones_by_arrival() -> None:
    line = WaitingLine(SchedulingPolicy.PRIORITY)
    for key, priority in ((1, 10), (2, 0), (3, 10), (4, 0)):
        line.join(waiting(key, priority))
    assert served(line) == [2, 4, 1, 3]


def test_a_preempted_one_goes_back_to_its_place_by_priority() -> None:
    line = WaitingLine(SchedulingPolicy.PRIORITY)
    line.join(waiting(2, priority=0))
    line.join(waiting(3, priority=10))
    line.put_back(waiting(1, priority=10))
    assert served(line) == [2, 1, 3]


def test_abandoned_ones_leave_and_the_others_keep_their_order() -> None:
    line = WaitingLine(SchedulingPolicy.FCFS)
    entries = [waiting(key) for key in range(6)]
    for entry in entries:
        line.join(entry)
    entries[0].abandoned = entries[3].abandoned = True
    line.drop_abandoned()
    assert served(line) == [1, 2, 4, 5]


def test_nobody_is_at_the_head_of_an_empty_line() -> None:
    line = WaitingLine(SchedulingPolicy.FCFS)
    assert line.head is None
    assert len(line) == 0
