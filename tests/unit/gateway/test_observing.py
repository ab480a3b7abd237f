"""Observe mode: everybody is let through, and the core holds what it would hold if it were obeyed."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

import pytest

from fakes.door import BOTH_LANES, policy, request, spec
from fakes.scripted_core import HandClock, ScriptedCore
from llmshed.admission.actions import Action, Dispatch, Enqueue, Evict, Refuse, Released
from llmshed.admission.events import Arrived, Cancelled, Draining, Event, Failed, Finished, FirstToken, NotSent, Tick
from llmshed.admission.policy import PoolPolicy, ReplicaSpec
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, Request
from llmshed.admission.verdict import Decision, Verdict
from llmshed.gateway.driver import Driver
from llmshed.gateway.observing import Observing
from llmshed.gateway.ticket import Ticket
from llmshed.observability.metrics import WOULD_REFUSE

ADMIT = Verdict(Decision.ADMIT, lane=Lane.BULK, output_ceiling_tokens=512, replica="r1", pool="main")
QUEUE = Verdict(Decision.QUEUE, lane=Lane.BULK, output_ceiling_tokens=512, replica="r2", pool="main")
FULL = Verdict(Decision.REFUSE, Reason.QUEUE_FULL, lane=Lane.BULK, retry_after_seconds=3.0, detail="it is full")
LATE = Verdict(Decision.REFUSE, Reason.QUEUE_TIMEOUT, lane=Lane.BULK)


def never(verdict: Verdict) -> None:
    raise AssertionError(f"nobody waits, and one is told {verdict}")


class Stage:
    """An observing desk before a core that does what the test says, and three replicas."""

    def __init__(self, up: Iterable[str] = ("r1", "r2", "r3")) -> None:
        self.core = ScriptedCore()
        self.driver = Driver(self.core, HandClock())
        self.up = [spec(name) for name in up]
        self.desk = Observing(self.driver, self.serving)
        self.keys = 0

    def serving(self, pool: str) -> list[ReplicaSpec]:
        assert pool == "main"
        return self.up

    async def arrives(self, answer: type[Dispatch | Enqueue | Refuse], verdict: Verdict) -> Ticket | Verdict:
        """Let a request arrive that the core answers so."""
        self.keys += 1
        actions: dict[type, Action] = {
            Dispatch: Dispatch(self.keys, verdict.replica or "", verdict),
            Enqueue: Enqueue(self.keys, "main", verdict),
            Refuse: Refuse(self.keys, verdict),
        }
        return await self.desk.admit(self.after(actions[answer], request(self.keys)), never)

    async def enters(self, answer: type[Dispatch | Enqueue | Refuse], verdict: Verdict) -> Ticket:
        ticket = await self.arrives(answer, verdict)
        assert isinstance(ticket, Ticket)
        self.core.heard.clear()
        assert self.driver.violations() == ()
        return ticket

    def after(self, action: Action, arriving: Request) -> Request:
        self.core.script = lambda event: [action] if isinstance(event, Arrived) else []
        return arriving

    def acts(self, *actions: Action) -> None:
        """Let the core act by itself."""
        self.core.script = lambda event: list(actions) if isinstance(event, Draining) else []
        self.driver.tell(Draining())
        self.core.heard.remove(Draining())
        assert self.driver.violations() == ()


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_dispatched_request_is_charged_and_goes_where_the_core_sends_it(stage: Stage) -> None:
    ticket = await stage.enters(Dispatch, ADMIT)
    assert (ticket.replica, ticket.would and ticket.would.word) == ("r1", "admit")
    assert ticket.wire_ceiling_tokens is None
    assert (stage.driver.live, stage.driver.charged, stage.driver.uncharged) == (1, 1, 0)
    ticket.first_token()
    ticket.finished(9)
    assert stage.core.heard == [FirstToken(1), Finished(1, 9)]


async def test_a_refused_one_is_let_through_and_the_core_hears_no_more_of_it(stage: Stage) -> None:
    with await stage.enters(Refuse, FULL) as ticket:
        assert (stage.driver.live, stage.driver.charged, stage.driver.uncharged) == (1, 0, 1)
        assert ticket.would is not None
        assert (ticket.would.decision, ticket.would.word) == (Decision.REFUSE, "queue_full")
        told = ticket.verdict
        assert (told.decision, told.reason, told.retry_after_seconds, told.detail) == (Decision.ADMIT, None, None, "")
        ticket.first_token()
        ticket.finished(9)
    assert stage.core.heard == []
    assert stage.driver.live == 0


async def test_a_queued_one_runs_at_its_preferred_replica_and_is_charged_once_the_core_dispatches_it(
    stage: Stage,
) -> None:
    ticket = await stage.enters(Enqueue, QUEUE)
    assert (ticket.replica, ticket.would and ticket.would.word) == ("r2", "queue")
    assert (stage.driver.charged, stage.driver.uncharged) == (0, 1)
    stage.acts(Dispatch(1, "r3", ADMIT))
    assert (stage.driver.charged, stage.driver.uncharged) == (1, 0)
    assert ticket.replica == "r2"
    ticket.finished(9)
    assert stage.core.heard == [Finished(1)]  # without a count, from which it would learn a pace


@pytest.mark.parametrize("begins", ["before", "after"])
async def test_a_late_charge_shows_the_prefill_that_the_engine_needed(begins: str, stage: Stage) -> None:
    loop = asyncio.get_running_loop()
    ticket = await stage.enters(Enqueue, QUEUE)
    sent_at = loop.time()
    if begins == "before":
        await asyncio.sleep(0.02)
        ticket.first_token()
        prefill_seconds = loop.time() - sent_at
        stage.acts(Dispatch(1, "r2", ADMIT))
        charged_at = loop.time()
    else:
        await asyncio.sleep(0.02)
        stage.acts(Dispatch(1, "r2", ADMIT))
        charged_at = loop.time()
        ticket.first_token()
        prefill_seconds = loop.time() - sent_at
    assert stage.core.heard == []
    async with asyncio.timeout(30):
        while not stage.core.heard:  # noqa: ASYNC110 - a timer's
            await asyncio.sleep(0.001)
    assert loop.time() - charged_at > 0.9 * prefill_seconds
    assert stage.core.heard == [FirstToken(1)]
    ticket.finished(9)


async def test_an_ending_before_a_late_first_token_was_told_is_told_alone(stage: Stage) -> None:
    ticket = await stage.enters(Enqueue, QUEUE)
    await asyncio.sleep(0.01)
    ticket.first_token()
    stage.acts(Dispatch(1, "r2", ADMIT))
    ticket.failed(engine_holds=False)
    await asyncio.sleep(0.02)
    assert stage.core.heard == [Failed(1, engine_holds=False)]


async def test_a_queued_one_whose_answer_ends_first_leaves_the_queue(stage: Stage) -> None:
    ticket = await stage.enters(Enqueue, QUEUE)
    ticket.finished(9)
    assert stage.core.heard == [Tick(), Cancelled(1, sent=False)]


async def test_a_wait_that_is_over_as_the_answer_ends_is_not_taken_back(stage: Stage) -> None:
    """The core acts on its timers first: it has no request to take out then."""
    ticket = await stage.enters(Enqueue, QUEUE)
    stage.core.script = lambda event: [Evict(1, LATE)] if isinstance(event, Tick) else []
    ticket.finished(9)
    assert stage.core.heard == [Tick()]
    assert ticket.would is not None
    assert ticket.would.reason is Reason.QUEUE_TIMEOUT
    assert stage.driver.live == 0


async def test_a_queued_one_that_is_evicted_runs_on_without_a_charge(stage: Stage) -> None:
    ticket = await stage.enters(Enqueue, QUEUE)
    stage.acts(Evict(1, LATE))
    assert ticket.would is not None
    assert (ticket.would.decision, ticket.would.reason) == (Decision.QUEUE, Reason.QUEUE_TIMEOUT)
    ticket.finished(9)
    assert stage.core.heard == []


async def test_a_charge_that_crosses_the_end_of_its_request_is_given_back(stage: Stage) -> None:
    ticket = await stage.enters(Enqueue, QUEUE)
    ticket.first_token()
    stage.core.script = lambda event: [Dispatch(1, "r2", ADMIT) if event == Tick() else Released(1, "r2", 1)]
    ticket.cancelled(sent=True)
    assert stage.core.heard == [Tick(), Cancelled(1, sent=True)]
    assert (stage.driver.live, stage.driver.charged) == (0, 0)


@pytest.mark.parametrize("answer", [Dispatch, Enqueue, Refuse])
async def test_a_ticket_that_is_dropped_ends_its_request(answer: type[Dispatch], stage: Stage) -> None:
    with await stage.enters(answer, {Dispatch: ADMIT, Enqueue: QUEUE, Refuse: FULL}[answer]):
        stage.core.script = lambda _: [Released(1, "r1", 1)]
    assert stage.driver.live == 0
    assert stage.driver.violations() == ()


@pytest.mark.parametrize("reason", [Reason.FORBIDDEN, Reason.UNAUTHENTICATED, Reason.NO_REPLICA, Reason.DRAINING])
async def test_what_nobody_has_a_right_to_or_could_answer_stays_refused(reason: Reason, stage: Stage) -> None:
    refusal = Verdict(Decision.REFUSE, reason)
    assert await stage.arrives(Refuse, refusal) is refusal
    assert stage.driver.live == 0


def test_the_metric_knows_every_reason_that_is_let_through(stage: Stage) -> None:
    passed = {reason for reason in Reason if not stage.desk.upholds(Verdict(Decision.REFUSE, reason))}
    assert passed == set(WOULD_REFUSE)


async def test_refused_ones_go_where_fewest_are_sent(stage: Stage) -> None:
    await stage.enters(Dispatch, ADMIT)  # r1
    await stage.enters(Enqueue, QUEUE)  # r2
    tickets = [await stage.enters(Refuse, FULL) for _ in range(4)]
    assert [ticket.replica for ticket in tickets] == ["r3", "r1", "r2", "r3"]
    tickets[1].finished()
    assert (await stage.enters(Refuse, FULL)).replica == "r1"


async def test_a_request_that_the_core_was_not_asked_about_passes_too(stage: Stage) -> None:
    backlog = Verdict(Decision.REFUSE, Reason.COUNTING_BACKLOG)
    ticket = stage.desk.let_pass(request(1), backlog)
    assert isinstance(ticket, Ticket)
    assert ticket.would is not None
    assert ticket.would.word == "counting_backlog"
    ticket.finished()
    assert stage.core.heard == []
    assert stage.desk.let_pass(request(2), unauthorised := Verdict(Decision.REFUSE, Reason.FORBIDDEN)) is unauthorised


async def test_without_a_replica_the_cores_own_refusal_is_told() -> None:
    stage = Stage(up=())
    assert await stage.arrives(Refuse, FULL) is FULL
    assert stage.driver.live == 0


class TestALostReplica:
    """One that read no byte of a request."""

    async def test_a_charged_request_goes_where_the_core_sends_it_next(self, stage: Stage) -> None:
        first = await stage.enters(Dispatch, ADMIT)
        stage.core.script = lambda _: [Released(1, "r1", 1), Dispatch(1, "r3", ADMIT)]
        second = await first.not_sent()
        assert isinstance(second, Ticket)
        assert (second.replica, second.would) == ("r3", first.would)
        assert stage.core.heard == [NotSent(1)]
        assert (stage.driver.live, stage.driver.charged) == (1, 1)
        second.finished()

    async def test_one_that_the_core_would_refuse_then_goes_on_uncharged(self, stage: Stage) -> None:
        first = await stage.enters(Dispatch, ADMIT)
        stage.core.script = lambda _: [Released(1, "r1", 1), Refuse(1, FULL)]
        second = await first.not_sent()
        assert isinstance(second, Ticket)
        assert second.replica == "r2"
        assert second.would is not None
        assert (second.would.decision, second.would.word) == (Decision.ADMIT, "queue_full")
        assert (stage.driver.live, stage.driver.charged) == (1, 0)
        second.finished()
        assert stage.core.heard == [NotSent(1)]

    async def test_a_queued_one_keeps_its_place(self, stage: Stage) -> None:
        first = await stage.enters(Enqueue, QUEUE)
        second = await first.not_sent()
        assert isinstance(second, Ticket)
        assert second.replica == "r1"
        assert stage.core.heard == []
        second.finished()
        assert stage.core.heard == [Tick(), Cancelled(1, sent=False)]

    @pytest.mark.parametrize("answer", [Dispatch, Enqueue, Refuse])
    async def test_two_are_the_end(self, answer: type[Dispatch], stage: Stage) -> None:
        ticket = await stage.enters(answer, {Dispatch: ADMIT, Enqueue: QUEUE, Refuse: FULL}[answer])
        elsewhere: dict[type, list[Action]] = {
            NotSent: [Released(1, "r1", 1), Dispatch(1, "r3", ADMIT)],
            Cancelled: [Released(1, "r3", 1)],
            Tick: [],
        }
        stage.core.script = lambda event: elsewhere[type(event)]
        second = await ticket.not_sent()
        assert isinstance(second, Ticket)
        elsewhere[NotSent] = [Released(1, "r3", 1), Refuse(1, FULL)]
        verdict = await second.not_sent()
        assert isinstance(verdict, Verdict)
        assert verdict.reason is Reason.NO_REPLICA
        assert (stage.driver.live, stage.driver.charged) == (0, 0)
        assert stage.driver.violations() == ()

    async def test_the_last_one_is_the_end_too(self) -> None:
        stage = Stage(up=("r1",))
        ticket = await stage.enters(Refuse, FULL)
        verdict = await ticket.not_sent()
        assert isinstance(verdict, Verdict)
        assert verdict.reason is Reason.NO_REPLICA
        assert stage.driver.live == 0


async def test_a_key_that_is_in_use_leaves_no_trace(stage: Stage) -> None:
    ticket = await stage.enters(Dispatch, ADMIT)
    with pytest.raises(ValueError, match="already live"):
        await stage.desk.admit(request(1), never)
    assert stage.driver.live == 1
    ticket.finished()


async def test_an_event_that_the_core_rejects_leaves_no_trace(stage: Stage) -> None:
    def reject(_: Event) -> list[Action]:
        raise KeyError("r9")

    stage.core.script = reject
    with pytest.raises(KeyError, match="r9"):
        await stage.desk.admit(request(1), never)
    assert stage.driver.live == 0


async def test_a_charge_that_nobody_told_of_is_a_violation(stage: Stage) -> None:
    await stage.enters(Refuse, FULL)
    stage.driver._charged.add(1)
    assert len(stage.driver.violations()) == 1


async def test_refused_ones_stay_in_the_pools_of_their_model_and_of_their_lane_if_there_are_any(stage: Stage) -> None:
    replicas = {"chat": [spec("r1", pool="chat")], "batch": [spec("r2", pool="batch")], "other": [spec("r3")]}
    stage.core._policy = policy(
        pools=(
            PoolPolicy("chat", "m", frozenset(), frozenset({Lane.INTERACTIVE})),
            PoolPolicy("batch", "m", frozenset(), frozenset({Lane.BULK})),
            PoolPolicy("other", "another", frozenset(), BOTH_LANES),
        )
    )
    stage.desk = Observing(stage.driver, replicas.__getitem__)
    too_large = Verdict(Decision.REFUSE, Reason.LANE_LIMIT, lane=Lane.OVERFLOW)
    assert [(await stage.enters(Refuse, FULL)).replica for _ in range(2)] == ["r2", "r2"]
    assert [(await stage.enters(Refuse, too_large)).replica for _ in range(2)] == ["r1", "r1"]


async def test_what_is_let_through_is_changed_by_no_rung(stage: Stage) -> None:
    ticket = await stage.enters(Dispatch, replace(ADMIT, degradations=("cap_output",)))
    assert (ticket.verdict.degradations, ticket.wire_ceiling_tokens) == ((), None)
    ticket.finished(5)
    shed = replace(FULL, reason=Reason.SHED_PRIORITY, rung="shed-low")
    ticket = await stage.enters(Refuse, shed)
    assert (ticket.verdict.rung, ticket.would and ticket.would.reason) == (None, Reason.SHED_PRIORITY)
    ticket.finished(5)
