"""What is held on board of a replica."""

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from fakes.passengers import ids, passenger
from fakes.stages import GPU
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.whatif.gates.engine_facts import EngineFacts
from llmshed.whatif.gates.hold import Hold
from llmshed.whatif.gates.prompts import prompt_work

if TYPE_CHECKING:
    from llmshed.whatif.gates.passenger import Passenger


def test_two_that_run_at_once_share_what_tgi_had_cached_before_them_and_no_more() -> None:
    hold = Hold(EngineFacts(GPU))
    first, second = (passenger(key, 1000, 100, blocks=ids(*range(10)), work=prompt_work(1000, 400)) for key in (1, 2))
    hold.join(first)
    assert hold.held_tokens == 1100, "nobody else refers to what it found"
    assert hold.has_room(second, second.work, 1800)
    assert not hold.has_room(second, second.work, 1799)
    hold.join(second)
    assert hold.held_tokens == 400 + 2 * 700
    hold.leave(first)
    assert hold.held_tokens == 1100


def test_with_vllm_they_share_all_that_is_equal() -> None:
    hold = Hold(EngineFacts(VllmParameters()))
    hold.join(passenger(1, 1000, 100, blocks=ids(*range(10)), work=prompt_work(1000)))
    second = passenger(2, 1050, 100, blocks=ids(*range(8), 77, 78), work=prompt_work(1050, 800))
    hold.join(second)
    assert hold.held_tokens == 1100 + 350


def test_several_copies_of_a_prompt_share_it_with_each_other() -> None:
    hold = Hold(EngineFacts(GPU))
    one = passenger(
        1,
        3000,
        100,
        blocks=ids(*range(10)),
        sequences=3,
        copies=3,
        prompt_tokens=(1000,),
        work=prompt_work(1000, 1000, 3),
    )
    hold.join(one)
    assert hold.held_tokens == 1000 + 3 * 100


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 3)), max_size=40))
def test_nothing_is_held_once_all_have_left(moves: list[tuple[int, int, int]]) -> None:
    hold = Hold(EngineFacts(GPU))
    there: dict[int, Passenger] = {}
    for key, length, kind in moves:
        if key in there:
            hold.leave(there.pop(key))
            continue
        one = passenger(key, 1000, 100, blocks=ids(*(kind,) * length) if length else None)
        one.work = prompt_work(1000, 100 * length)
        hold.join(one)
        there[key] = one
        assert hold.check(there.values()) == []
        assert 100 * len(there) <= hold.held_tokens <= hold.true_tokens
        assert hold.kv_tokens <= sum(other.kv_tokens for other in there.values())
    assert hold.check([*there.values(), passenger(99)]) != []
    for one in there.values():
        hold.leave(one)
    assert (hold.held_tokens, hold.kv_tokens, hold.sequences, hold.true_tokens) == (0, 0, 0, 0)
