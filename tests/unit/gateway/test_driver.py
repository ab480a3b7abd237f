"""The driver tells the core each fact once, and every ticket has exactly one ending."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fakes.door import door, queueing_lanes, request, spec
from fakes.rungs import STOP_BULK, ladder_of, policy_on, pool_on
from fakes.scripted_core import HandClock, ScriptedCore
from llmshed.admission.actions import Action, Dispatch, Enqueue, Evict, Refuse, Released
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import (
    Arrived,
    Cancelled,
    Draining,
    Event,
    Failed,
    Finished,
    FirstToken,
    ReplicaUp,
    RungHeld,
    RungReleased,
    Tick,
)
from llmshed.admission.reasons import Reason
from llmshed.admission.verdict import Decision, Verdict
from llmshed.gateway.driver import Driver
from llmshed.gateway.ticket import Ticket
from llmshed.ladder.standing import Cause, Hold, Step

ADMIT = Verdict(Decision.ADMIT, replica="r1")
QUEUED = Verdict(Decision.QUEUE, replica="r1")
REFUSAL = Verdict(Decision.REFUSE, reason=Reason.CONCURRENCY_LIMIT)

LADDER = ladder_of(STOP_BULK)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def core() -> AdmissionController:
    return door(spec("r1"), spec("r2"))


@pytest.fixture
def driver(core: AdmissionController, clock: HandClock) -> Iterator[Driver]:
    driver = Driver(core, clock)
    yield driver
    assert driver.violations() == ()
    driver.close()


async def admitted(driver: Driver, **changes: Any) -> Ticket:
    ticket = await driver.admit(request(driver.new_key(), **changes))
    assert isinstance(ticket, Ticket)
    return ticket


async def test_an_admitted_request_holds_its_reservation_until_it_finishes(driver: Driver) -> None:
    with await admitted(driver) as ticket:
        assert (driver.live, driver.charged) == (1, 1)
        assert sum(replica.equation.active_tokens for replica in driver.state().replicas) == 500
        ticket.first_token()
        ticket.finished(7)
    assert (driver.live, driver.charged) == (0, 0)
    assert sum(replica.equation.active_tokens for replica in driver.state().replicas) == 0


async def test_a_refusal_charges_nothing(driver: Driver) -> None:
    verdict = await driver.admit(request(driver.new_key(), 200_000))
    assert isinstance(verdict, Verdict)
    assert verdict.reason is Reason.CONTEXT_LIMIT
    assert (driver.live, driver.charged) == (0, 0)


async def test_a_ticket_dropped_without_an_ending_counts_as_a_client_that_left(driver: Driver) -> None:
    with await admitted(driver):
        pass
    assert (driver.live, driver.charged) == (0, 1)


async def test_a_second_ending_is_an_error_and_the_ledger_hears_only_the_first(driver: Driver) -> None:
    with await admitted(driver) as ticket:
        ticket.finished(1)
        seconds: list[Callable[[], None]] = [
            lambda: ticket.finished(1),
            lambda: ticket.failed(engine_holds=False),
            lambda: ticket.cancelled(sent=True),
            ticket.first_token,
        ]
        for second in seconds:
            with pytest.raises(RuntimeError, match="only one ending"):
                second()
    assert driver.charged == 0


async def test_the_tokens_of_a_gone_client_come_back_by_the_timer(driver: Driver, clock: HandClock) -> None:
    with await admitted(driver) as ticket:
        ticket.first_token()
        ticket.cancelled(sent=True)
    assert driver.charged == 1
    clock.at = 3600.0
    assert driver._timer is not None
    driver._timer.cancel()
    driver._tick()
    assert driver.charged == 0
    assert driver._timer is None


async def test_a_replica_that_read_nothing_is_replaced_by_another(driver: Driver) -> None:
    with await admitted(driver) as first:
        second = await first.not_sent()
    assert isinstance(second, Ticket)
    assert second.replica != first.replica
    assert not first.is_open
    with second:
        third = await second.not_sent()
    assert isinstance(third, Verdict)
    assert third.reason is Reason.NO_REPLICA
    assert (driver.live, driver.charged) == (0, 0)


async def test_facts_of_no_single_request_reach_the_core(driver: Driver) -> None:
    driver.tell(Draining())
    assert driver.state().draining
    refusal = driver.gate("acme")
    assert refusal is not None
    assert refusal.reason is Reason.DRAINING
    assert driver.assess(request(9)).reason is Reason.DRAINING


async def test_a_key_that_is_in_use_leaves_no_trace(driver: Driver) -> None:
    ticket = await admitted(driver)
    with pytest.raises(ValueError, match="already live"):
        await driver.admit(request(ticket.key))
    assert driver.live == 1
    ticket.finished(1)


async def test_a_queued_request_waits_until_the_core_dispatches_it(clock: HandClock) -> None:
    core = ScriptedCore()
    driver = Driver(core, clock)
    core.script = lambda event: [Enqueue(1, "main", QUEUED)] if isinstance(event, Arrived) else []
    heard: list[Verdict] = []
    waiting = asyncio.ensure_future(driver.admit(request(1), heard.append))
    await asyncio.sleep(0)
    assert (driver.live, heard) == (1, [QUEUED])
    core.script = lambda _: [Released(7, "r1", 10), Dispatch(1, "r1", ADMIT)]
    driver.tell(Draining())
    ticket = await waiting
    assert isinstance(ticket, Ticket)
    assert (ticket.key, ticket.replica) == (1, "r1")


async def test_an_evicted_request_gets_its_verdict(clock: HandClock) -> None:
    core = ScriptedCore()
    driver = Driver(core, clock)
    waiting = asyncio.ensure_future(driver.admit(request(1)))
    await asyncio.sleep(0)
    core.script = lambda _: [Evict(1, REFUSAL)]
    driver.tell(Draining())
    assert await waiting is REFUSAL
    assert driver.live == 0


async def test_leaving_the_queue_is_told_as_never_sent(clock: HandClock) -> None:
    core = ScriptedCore()
    driver = Driver(core, clock)
    waiting = asyncio.ensure_future(driver.admit(request(1)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert core.heard[-1] == Cancelled(1, sent=False)
    assert driver.live == 0


async def test_a_client_that_leaves_when_its_wait_is_over_already_leaves_nothing(clock: HandClock) -> None:
    core = door(spec(gross_ceiling_tokens=10_000, decode_seconds_per_token=0.001), lanes=queueing_lanes())
    driver = Driver(core, clock)
    with await admitted(driver, input_tokens=8_000) as running:
        first, second = (asyncio.ensure_future(driver.admit(request(driver.new_key(), 1_000))) for _ in range(2))
        await asyncio.sleep(0)
        assert driver.live == 3
        clock.at = 11.0  # a second after the residence, and the timer has not run
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        verdict = await second
        assert isinstance(verdict, Verdict)
        assert verdict.reason is Reason.QUEUE_TIMEOUT
        running.finished(1)
    assert (driver.live, driver.charged, driver.violations()) == (0, 0, ())
    driver.close()


@pytest.mark.parametrize(
    ("answer", "told"),
    [(Dispatch(1, "r1", ADMIT), [Cancelled(1, sent=False)]), (Refuse(1, REFUSAL), []), (Evict(1, REFUSAL), [])],
)
async def test_an_answer_that_crosses_a_cancellation_is_settled_once(
    answer: Action, told: list[Event], clock: HandClock
) -> None:
    core = ScriptedCore()
    driver = Driver(core, clock)
    waiting = asyncio.ensure_future(driver.admit(request(1)))
    await asyncio.sleep(0)
    waiting.cancel()
    afterwards: dict[type, list[Action]] = {Draining: [answer], Cancelled: [Released(1, "r1", 1)]}
    core.script = lambda event: afterwards.get(type(event), [])
    driver.tell(Draining())
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert core.heard[2:] == told
    assert (driver.live, driver.charged) == (0, 0)


async def test_the_timer_follows_the_cores_wish(clock: HandClock) -> None:
    core = ScriptedCore()
    driver = Driver(core, clock)
    ticked = asyncio.Event()

    def script(event: Event) -> list[Action]:
        if isinstance(event, Tick):
            core.wakeup = None
            ticked.set()
        return []

    core.script = script
    core.wakeup = 100.0
    driver.tell(Draining())
    core.wakeup = 0.01
    driver.tell(Draining())
    async with asyncio.timeout(30):
        await ticked.wait()
    assert driver._timer is None


async def test_endings_reach_the_core_as_their_events(clock: HandClock) -> None:
    core = ScriptedCore()
    driver = Driver(core, clock)
    endings: list[tuple[Callable[[Ticket], None], Event]] = [
        (lambda ticket: ticket.finished(3), Finished(1, 3)),
        (lambda ticket: ticket.failed(engine_holds=True), Failed(1, engine_holds=True)),
        (lambda ticket: ticket.cancelled(sent=False), Cancelled(1, sent=False)),
        (lambda ticket: ticket.first_token(), FirstToken(1)),
    ]
    for end, event in endings:
        core.script = lambda event: [Dispatch(1, "r1", ADMIT)] if isinstance(event, Arrived) else []
        ticket = await driver.admit(request(1))
        assert isinstance(ticket, Ticket)
        end(ticket)
        assert core.heard[-1] == event


async def test_whoever_listens_hears_each_step_of_a_ladder(clock: HandClock) -> None:
    driver = Driver(AdmissionController(policy_on(pool_on(LADDER))), clock)
    heard: list[Step] = []
    driver.on_step = heard.append
    driver.tell(RungHeld("main", Hold("r1", 30.0, "a test")))
    assert [rung.name for rung in driver.rungs_in_force("main")] == ["r1"]
    assert driver.rungs_in_force("unknown") == ()
    driver.tell(RungReleased("main"))
    assert driver.rungs_in_force("main") == ()
    assert [(step.pool, step.before, step.after, step.cause) for step in heard] == [
        ("main", 0, 1, Cause.HELD),
        ("main", 1, 0, Cause.RELEASED),
    ]
    with pytest.raises(ValueError, match="no rung `r9`"):
        driver.tell(RungHeld("main", Hold("r9", 30.0, "a test")))
    with pytest.raises(KeyError):
        driver.tell(RungHeld("unknown", Hold("r1", 30.0, "a test")))
    driver.close()


async def test_a_step_that_cannot_be_told_costs_nobody_an_answer(
    clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    """One of bulk waits behind 83,400 of 86,400 tokens; the rung that stops it sends it away."""
    controller = AdmissionController(policy_on(pool_on(LADDER), lanes=queueing_lanes(10, 1e5, 1e5)))
    driver = Driver(controller, clock)
    driver.tell(ReplicaUp(spec()))
    await driver.admit(request(driver.new_key(), 3_000, 83_000))

    def refuse(step: Step) -> None:
        raise OSError(f"no room to write {step} down")

    driver.on_step = refuse
    asyncio.get_running_loop().call_later(0.01, driver.tell, RungHeld("main", Hold("r1", 30.0, "a test")))
    verdict = await driver.admit(request(driver.new_key(), 5_000, 100))
    assert isinstance(verdict, Verdict)
    assert (verdict.reason, verdict.rung) == (Reason.SHED_PRIORITY, "r1")
    assert [record.message for record in caplog.records] == ["step_unheard"]
    driver.close()
