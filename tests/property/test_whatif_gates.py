"""Every gate under any order of events: each arrival has one answer, nothing is lost, nothing turns in place.

The test keeps its own books by the actions alone. The engines behind it stay idle; what they would tell, it makes up.
"""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from fakes.stages import ONE_POOL, stage, traced
from llmshed.admission.actions import Action, Dispatch, Enqueue, Evict, Refuse, Released, RungChanged
from llmshed.admission.events import (
    Arrived,
    Cancelled,
    Event,
    Failed,
    Finished,
    FirstToken,
    NotSent,
    ReplicaDown,
    ReplicaUp,
    Tick,
)
from llmshed.admission.request import Intent, PriorityClass, Request
from llmshed.admission.verdict import Decision
from llmshed.whatif.gates.table import GATES, build_gate

TIGHT = ONE_POOL.replace("60_000", "9_000").replace("= 100", "= 3")
"""Little enough that most gates soon have to queue or refuse."""

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.integers(0, 9_000), st.none() | st.integers(1, 3_000), st.integers(1, 3)),
        st.tuples(st.just("wait"), st.floats(0, 3)),
        st.tuples(
            st.sampled_from(["first", "finish", "fail", "held", "cancel", "unsent", "give_up"]), st.integers(0, 50)
        ),
        st.tuples(st.sampled_from(["down", "up"]), st.integers(0, 1)),
    ),
    max_size=60,
)


class Stage:
    """A gate, what it was told, and what it answered."""

    def __init__(self, name: str) -> None:
        self.setting = stage(2, text=TIGHT)
        self.gate = build_gate(name, self.setting)
        self.now = 0.0
        self.keys = 0
        self.waiting: set[int] = set()
        self.running: dict[int, str] = {}
        self.releasing: dict[int, str] = {}
        self.seen_first: set[int] = set()
        self.down: set[str] = set()

    def tell(self, event: Event) -> list[Action]:
        actions = self.gate.handle(event, self.now)
        for action in actions:
            self.perform(action)
        assert self.gate.check() == ()
        return actions

    def perform(self, action: Action) -> None:
        match action:
            case Dispatch(key, replica, verdict):
                assert verdict.decision is Decision.ADMIT
                assert verdict.output_ceiling_tokens is not None
                assert replica not in self.down
                assert key not in self.running
                self.waiting.discard(key)
                self.running[key] = replica
            case Enqueue(key, _, verdict):
                assert verdict.decision is Decision.QUEUE
                assert key not in self.waiting | self.running.keys()
                self.waiting.add(key)
            case Evict(key, verdict):
                assert verdict.reason is not None
                self.waiting.remove(key)
            case Refuse(key, verdict):
                assert verdict.decision is Decision.REFUSE
                assert verdict.reason is not None
                assert key not in self.waiting | self.running.keys()
            case Released(key, replica, _):
                assert {**self.running, **self.releasing}[key] == replica
                self.releasing.pop(key, None)
                self.running.pop(key, None)
            case RungChanged():
                raise AssertionError("no ladder was given")

    def arrive(self, input_tokens: int, output: int | None, copies: int) -> None:
        self.keys += 1
        key = self.keys
        intent = Intent.BULK if key % 3 == 0 else None
        self.setting.traced[key] = traced(
            self.now, max(input_tokens, 1), 1 + key * 37 % 700, asked_output_tokens=output, copies=copies
        )
        request = Request(
            key=key,
            tenant=self.setting.default_tenant,
            model=self.setting.model,
            prompt_tokens=(input_tokens,),
            copies=copies,
            asked_output_tokens=output,
            asked_intent=intent,
            asked_class=PriorityClass.LOW if key % 5 == 0 else None,
            streamed=key % 4 != 0,
            arrived_at=self.now,
        )
        told = self.tell(Arrived(request))
        answers = [a for a in told if not isinstance(a, Released | RungChanged) and a.key == key]
        first = answers[0]
        assert isinstance(first, Dispatch | Enqueue | Refuse)
        assert len(answers) == 1 or isinstance(first, Enqueue), "one answer, and one more only after an Enqueue"

    def wait(self, seconds: float) -> None:
        """Let time pass, with every tick that the gate asks for on the way."""
        until = self.now + seconds
        while (at := self.gate.next_wakeup()) is not None and at <= until:
            self.now = max(self.now, at)
            self.tell(Tick())
            again = self.gate.next_wakeup()
            assert again is None or again > self.now, "a tick that changes nothing would be asked for again at once"
        self.now = until

    def end(self, how: str, choice: int) -> None:
        if how == "give_up":
            if self.waiting:
                key = sorted(self.waiting)[choice % len(self.waiting)]
                self.waiting.remove(key)
                self.tell(Cancelled(key, sent=False))
            return
        if not self.running:
            return
        key = sorted(self.running)[choice % len(self.running)]
        match how:
            case "first":
                if key not in self.seen_first and self.setting.traced[key].streamed:
                    self.seen_first.add(key)
                    self.tell(FirstToken(key))
            case "finish":
                self.tell(Finished(key, 1))
                assert key not in self.running
            case "fail":
                self.tell(Failed(key, engine_holds=False))
                assert key not in self.running
            case "unsent" if key not in self.seen_first:
                lost = self.running[key]
                self.tell(NotSent(key))
                assert self.running.get(key) != lost
            case "held" | "cancel":
                self.releasing[key] = self.running.pop(key)
                self.tell(Failed(key, engine_holds=True) if how == "held" else Cancelled(key, sent=True))
            case _:
                pass

    def change(self, how: str, place: int) -> None:
        spec = self.setting.specs[place]
        if how == "down":
            self.down.add(spec.name)
            self.tell(ReplicaDown(spec.name))
        else:
            self.down.discard(spec.name)
            self.tell(ReplicaUp(spec))

    def do(self, operation: tuple[Any, ...]) -> None:
        match operation:
            case ("arrive", input_tokens, output, copies):
                self.arrive(input_tokens, output, copies)
            case ("wait", seconds):
                self.wait(seconds)
            case ("down" | "up" as how, place):
                self.change(how, place)
            case (how, choice):
                self.end(how, choice)
            case _:
                raise AssertionError(operation)


@pytest.mark.parametrize("name", GATES)
@settings(max_examples=60)
@given(operations=OPERATIONS)
def test_each_arrival_has_one_answer_and_each_wait_one_end(name: str, operations: list[tuple[Any, ...]]) -> None:
    staged = Stage(name)
    for operation in operations:
        staged.do(operation)
    for key in sorted(staged.running):
        if key in staged.running:
            staged.end("finish", sorted(staged.running).index(key))
    staged.wait(400.0)
    assert not staged.waiting, "what waits is served or evicted in the end"
    while staged.running:
        staged.end("finish", 0)
        staged.wait(1.0)
    assert not staged.releasing
    assert staged.gate.next_wakeup() is None, "nothing is left that time would change"
