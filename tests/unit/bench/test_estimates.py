"""Told waits and what they came to, of a gate that says what it is told."""

from dataclasses import replace
from typing import Any

import pytest
from estimate_watch import EstimateWatch, Return, Told
from estimates import Line

from fakes.scripted_gate import MODEL, ScriptedGate, policy_of, spec_of
from fakes.stages import stage
from llmshed.admission.actions import Action, Dispatch, Enqueue, Evict, Refuse, Released
from llmshed.admission.budget import Reservation
from llmshed.admission.events import Arrived, FirstToken, Tick
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, PriorityClass, Request
from llmshed.admission.verdict import Decision, DelayTerms, Verdict


class Watch:
    """The watch around a scripted gate before one replica of 10,000 tokens and 2,000 prompt tokens a second."""

    def __init__(self) -> None:
        self.gate = ScriptedGate()
        self.watch = EstimateWatch(self.gate, replace(stage(), policy=policy_of(), specs=(spec_of(),)))

    def tell(self, now: float, *answer: Action, first_token: int | None = None) -> None:
        self.gate.answer = list(answer)
        self.watch.handle(Tick() if first_token is None else FirstToken(first_token), now)

    def come(self, key: int, now: float, action: Action) -> None:
        self.gate.answer = [action]
        self.watch.handle(Arrived(Request(key, "anonymous", MODEL, (100,), arrived_at=now)), now)


def verdict(
    tokens: int, wait: float = 0.0, priority_class: PriorityClass = PriorityClass.NORMAL, **more: Any
) -> Verdict:
    return Verdict(
        Decision.ADMIT,
        lane=Lane.INTERACTIVE,
        priority_class=priority_class,
        reservation=Reservation(tokens // 10, tokens - tokens // 10, 0, 1),
        delay=DelayTerms(0, 0, wait, 0.0, 1.0, 1.0, wait, 0.0),
        **more,
    )


def refused(tokens: int, wait: float, **more: Any) -> Verdict:
    return verdict(tokens, wait, reason=Reason.TOKEN_BUDGET_EXHAUSTED, retry_after_seconds=wait, **more)


def test_a_queued_request_waits_until_it_is_sent_or_turned_away() -> None:
    one = Watch()
    one.come(1, 1.0, Enqueue(1, "main", verdict(1000, 0.5)))
    one.come(2, 1.0, Enqueue(2, "main", verdict(1000, 0.75)))
    one.come(3, 1.0, Enqueue(3, "main", verdict(1000, 0.8)))
    one.tell(1.25, Dispatch(1, "a", verdict(1000)))
    one.tell(1.5, Evict(3, verdict(1000, reason=Reason.SHED_PRIORITY)))
    one.tell(2.0, Evict(2, verdict(1000, reason=Reason.QUEUE_TIMEOUT)))
    assert one.watch.waits == [Told(1.0, 0.5, 0.25, ghost=False), Told(1.0, 0.75, 1.0, ghost=False)]


def test_a_ghost_would_fit_once_enough_came_free_for_it_and_for_what_waited_before_it() -> None:
    one = Watch()
    for key in (1, 2):
        one.come(key, 0.0, Dispatch(key, "a", verdict(4500)))
        one.tell(0.1, first_token=key)
    one.come(3, 1.0, Enqueue(3, "main", verdict(3000, 2.0)))
    one.come(4, 1.0, Refuse(4, refused(3000, 4.0)))
    one.tell(3.0, Released(1, "a", 4500))
    assert one.watch.waits == [], "5,500 are free and 6,000 are lacking"
    one.tell(5.0, Released(2, "a", 4500))
    assert one.watch.waits == [Told(1.0, 4.0, 4.0, ghost=True)]
    assert one.watch.returns == [Return(1.0, 4.0, 4.0)]


def test_what_came_later_takes_nothing_from_a_ghost_unless_it_is_of_a_higher_class() -> None:
    for priority_class, fits_at in ((PriorityClass.NORMAL, 3.0), (PriorityClass.HIGH, 5.0)):
        one = Watch()
        one.come(1, 0.0, Dispatch(1, "a", verdict(9000)))
        one.tell(0.1, first_token=1)
        one.come(2, 1.0, Refuse(2, refused(3000, 1.5)))
        later = Dispatch(3, "a", verdict(9000, priority_class=priority_class))
        one.gate.answer = [Released(1, "a", 9000), later]
        one.watch.handle(Arrived(Request(3, "anonymous", MODEL, (100,), arrived_at=3.0)), 3.0)
        one.tell(4.0, first_token=3)
        one.tell(5.0, Released(3, "a", 9000))
        assert [told.actual for told in one.watch.waits] == [fits_at - 1.0]


def test_a_ghost_waits_for_the_prompts_ahead_too() -> None:
    """A prompt of 900 tokens where 500 may go at once leaves a debt of 400, paid after 0.2 s at 2,000 a second."""
    one = Watch()
    one.come(1, 1.0, Dispatch(1, "a", verdict(9000)))
    one.tell(1.0, first_token=1)
    one.come(2, 1.0, Refuse(2, refused(3000, 1.0)))
    one.tell(1.1, Released(1, "a", 9000))
    assert one.watch.waits == []
    one.tell(1.3)
    assert [told.actual for told in one.watch.waits] == [pytest.approx(0.3)]


def test_a_ghost_would_have_been_let_in_where_somebody_was_who_came_later() -> None:
    one = Watch()
    one.come(1, 1.0, Dispatch(1, "a", verdict(9900)))
    one.tell(1.0, first_token=1)
    one.come(2, 1.0, Refuse(2, refused(3000, 1.0)))
    one.tell(1.05, Released(1, "a", 9900))
    assert one.watch.waits == []
    one.come(3, 1.1, Dispatch(3, "a", verdict(9900)))
    assert [told.actual for told in one.watch.waits] == [pytest.approx(0.1)]


def test_what_earlier_refusals_were_promised_drains_first() -> None:
    one = Watch()
    for number in range(20):  # so that a rate is known: 20 x 900 in a second
        one.come(100 + number, 0.05 * number, Dispatch(100 + number, "a", verdict(900)))
        one.tell(0.05 * number, Released(100 + number, "a", 900))
    one.come(1, 2.0, Dispatch(1, "a", verdict(5000)))
    one.come(2, 2.0, Dispatch(2, "a", verdict(5000)))
    one.tell(2.1, first_token=1)
    one.tell(2.1, first_token=2)
    one.come(3, 3.0, Refuse(3, refused(4000, 1.0)))
    one.come(4, 3.0, Refuse(4, refused(4000, 2.0)))
    one.tell(5.0, Released(1, "a", 5000))
    one.tell(7.0, Released(2, "a", 5000))
    assert [told.actual for told in one.watch.waits] == [2.0, 2.0]
    assert one.watch.returns == [Return(3.0, 1.0, 2.0), Return(3.0, 2.0, 4.0)]


def test_a_line_of_the_table() -> None:
    waits = (
        Told(0.0, 0.01, 0.04, ghost=False),
        Told(0.0, 1.0, 0.5, ghost=False),
        Told(0.0, 1.0, 2.0, ghost=False),
        Told(0.0, 3.0, 2.0, ghost=True),
    )
    returns = (Return(0.0, 1.2, 2.0), Return(0.0, 1.2, 2.5), Return(0.0, 5.5, 4.0))
    assert Line("x", waits, returns).text() == "| x | 2 | 1 | 67 % | 50 % | 1.50 | 3.00 | 3 | 33 % | +50 % of 1 |"
    assert Line("x", waits[:1], ()).text() is None
    assert Line("x", waits[1:2], ()).text() == "| x | 1 | 0 | 100 % | 100 % | 2.00 | 1.00 | 0 | - | - |"
