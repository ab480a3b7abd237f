"""The controller under any order of events: nothing leaks, nothing is lent twice, every request ends once.

The model keeps its own books: who waits since when, and who runs where with how many tokens, by the actions alone.
After every step the controller's own `check`, its state and the model must agree. Pools may have a ladder, whose rungs
come into force by its windows or are held.
"""

from collections.abc import Mapping
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fakes.controller_books import RESIDENCE_SECONDS, Books
from fakes.door import queueing_lanes, request, spec
from fakes.rungs import SHED_LOW, SHED_NORMAL, STOP_BULK, cap, ladder_of, policy_on, pool_on
from llmshed.admission.actions import Dispatch, Enqueue, Refuse, Released, RungChanged
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import (
    Arrived,
    BudgetChanged,
    Cancelled,
    Draining,
    Event,
    Failed,
    Finished,
    FirstToken,
    NotSent,
    PolicyChanged,
    ReplicaDown,
    ReplicaRemoved,
    ReplicaUp,
    RungHeld,
    RungReleased,
    Tick,
)
from llmshed.admission.policy import LanePolicy, ReplicaBudget, TenantPolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.request import SERVICE_RANKS, Intent, Lane, PriorityClass, Request, service_rank
from llmshed.admission.service.choice import MOST_LOOKED_AT
from llmshed.admission.service.pool import RANKED
from llmshed.admission.verdict import Decision, Verdict
from llmshed.ladder.model import Ladder
from llmshed.ladder.standing import Hold

TENANTS = {
    "acme": TenantPolicy("acme", max_concurrent_requests=9, max_reserved_tokens=90_000),
    "bulky": TenantPolicy("bulky", intents=frozenset({Intent.BULK}), top_class=PriorityClass.HIGH),
    "other": TenantPolicy("other", top_class=PriorityClass.HIGH, weight=3.0),
}
REPLICAS = ("r1", "r2", "r3")
DECODE_SECONDS = 0.004
"""Time of a token: at it most of what does not fit is worth a wait of some seconds."""
TIMED = {Reason.QUEUE_TIMEOUT, Reason.DEADLINE_INFEASIBLE}
OUTPUTS = st.sampled_from([None, 1, 100, 1_000, 9_000]) | st.integers(1, 9_000)
PROMPTS = st.lists(st.sampled_from([10, 400, 4_000, 9_000]) | st.integers(0, 30_000), min_size=1, max_size=2)
SECONDS = st.sampled_from([None, None, None, 0.5, 3.0, 40.0])
LADDERS = (
    None,
    ladder_of(STOP_BULK, SHED_LOW, cap(200), SHED_NORMAL, window_seconds=2.0, sample_minimum=1),
    ladder_of(cap(50), STOP_BULK, window_seconds=30.0, descend_needs_room=False),
    ladder_of(STOP_BULK | {"scope": {"tenants": ["acme"]}}, cap(300, scope={"classes": ["high"]}), window_seconds=5.0),
)


def lanes_of(queue_requests: int, bulk_input: int | None = None) -> Mapping[Lane, LanePolicy]:
    lanes = queueing_lanes(queue_requests, RESIDENCE_SECONDS[Lane.INTERACTIVE], RESIDENCE_SECONDS[Lane.BULK])
    return lanes | {Lane.BULK: replace(lanes[Lane.BULK], max_input_tokens=bulk_input)}


class Door(Books, RuleBasedStateMachine):
    """Random arrivals, endings, outages, budgets and reloads on one virtual clock."""

    def __init__(self) -> None:
        RuleBasedStateMachine.__init__(self)
        Books.__init__(self)

    @initialize(
        queue_requests=st.sampled_from([0, 2, 6, 30]),
        rate=st.sampled_from([None, 2_000.0, 50_000.0]),
        ladder=st.sampled_from(LADDERS),
    )
    def one_replica(self, queue_requests: int, rate: float | None, ladder: Ladder | None) -> None:
        self.rate = rate
        self.queue_requests = queue_requests
        self.ladder = ladder
        self.controller = AdmissionController(
            policy_on(pool_on(ladder), tenants=TENANTS, lanes=lanes_of(queue_requests))
        )
        self.come_up("r1", 96_000, 8)

    @rule(
        prompts=PROMPTS,
        output=OUTPUTS,
        copies=st.sampled_from([1, 1, 3]),
        tenant=st.sampled_from(sorted(TENANTS)),
        intent=st.none() | st.sampled_from(Intent),
        asked_class=st.none() | st.sampled_from(PriorityClass),
        streamed=st.booleans(),
        continuing=st.booleans(),
        body=st.sampled_from([None, None, "a", "b"]),
        first_token_in=SECONDS,
        done_in=SECONDS,
        declines=st.sampled_from([False, False, False, True]),
    )
    def arrive(  # noqa: PLR0917 - one argument a field
        self,
        prompts: list[int],
        output: int | None,
        copies: int,
        tenant: str,
        intent: Intent | None,
        asked_class: PriorityClass | None,
        streamed: bool,  # noqa: FBT001 - drawn
        continuing: bool,  # noqa: FBT001 - drawn
        body: str | None,
        first_token_in: float | None,
        done_in: float | None,
        declines: bool,  # noqa: FBT001 - drawn
    ) -> None:
        key = len(self.arrived) + 1
        made = request(
            key,
            prompts,
            output,
            copies=copies,
            tenant=tenant,
            asked_intent=intent,
            asked_class=asked_class,
            streamed=streamed,
            continuing=continuing,
            fingerprint=body,
            first_token_deadline=None if first_token_in is None else self.now + first_token_in,
            deadline=None if done_in is None else self.now + done_in,
            declines_degrading=declines,
        )
        self.come(made)

    @rule(times=st.integers(1, 20), size=st.sampled_from([400, 4_000, 20_000]))
    def come_in_a_crowd(self, times: int, size: int) -> None:
        for _ in range(times):
            self.come(request(len(self.arrived) + 1, size, 200, tenant="other"))

    def come(self, made: Request) -> None:
        wakeup = self.controller.next_wakeup()
        was_due = wakeup is not None and wakeup <= self.now
        expected = self.controller.assess(made, self.now)
        self.arrived[made.key] = made
        self.bounds[made.key] = self.queue_requests
        told = [
            one
            for one in self.tell(Arrived(made))
            if not isinstance(one, Released | RungChanged) and one.key == made.key
        ]
        assert isinstance(told[0], Dispatch | Enqueue | Refuse)
        if not was_due:  # nothing came due in between, so the question and the answer saw the same
            assert told[0].verdict == expected
        if isinstance(told[0], Refuse):
            if told[0].verdict.rung is not None and told[0].verdict.reason is Reason.SHED_PRIORITY:
                self.nobody_lower_is_taken(made, told[0].verdict)
        else:
            assert not self.draining
            mine = [one.tokens for one in self.held.values() if one.request.tenant == made.tenant]
            mine += [one.tokens for one in self.waiting.values() if one.request.tenant == made.tenant]
            assert len(mine) <= (TENANTS[made.tenant].max_concurrent_requests or len(mine))
            assert sum(mine) <= (TENANTS[made.tenant].max_reserved_tokens or sum(mine))

    @precondition(lambda self: self.live)
    @rule(data=st.data(), how=st.sampled_from(["finished", "failed", "held", "cancelled", "unsent"]))
    def end(self, data: st.DataObject, how: str) -> None:
        key = self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))
        event: Event
        match how:
            case "finished":
                self.tell(FirstToken(key))
                held = self.held[key]
                event = Finished(key, data.draw(st.integers(1, held.sequences * held.ceiling)))
            case "failed":
                event = Failed(key, engine_holds=False)
            case "held":
                event = Failed(key, engine_holds=True)
            case "cancelled":
                event = Cancelled(key, sent=True)
            case _:
                event = Cancelled(key, sent=False)
        actions = self.tell(event)
        at_once = how in {"finished", "failed", "unsent"}
        assert at_once == any(isinstance(action, Released) and action.key == key for action in actions)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), late=st.sampled_from([0.0, 0.0, 0.5, 8.0, 100.0]))
    def leave_the_queue(self, data: st.DataObject, late: float) -> None:
        """One that leaves ends by that alone, though a wake-up of its own or of others may be due by then."""
        key = data.draw(st.sampled_from(sorted(self.waiting)))
        del self.waiting[key]
        self.end_of(key)
        self.now += late
        self.punctual = late == 0.0
        self.tell(Cancelled(key, sent=False))
        self.punctual = True

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def see_first_token(self, data: st.DataObject) -> None:
        self.tell(FirstToken(data.draw(st.sampled_from(self.live))))

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def bounce(self, data: st.DataObject) -> None:
        key = self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))
        lost = self.held[key].replica
        self.bounced.add(key)
        told = [one for one in self.tell(NotSent(key)) if not isinstance(one, RungChanged) and one.key == key]
        assert isinstance(told[0], Released)
        assert isinstance(told[1], Dispatch | Enqueue | Refuse)
        if isinstance(told[1], Dispatch):
            assert told[1].replica != lost

    @rule(name=st.sampled_from(REPLICAS), gross=st.sampled_from([0, 20_000, 96_000]), cap=st.sampled_from([0, 3, 8]))
    def come_up(self, name: str, gross: int, cap: int) -> None:
        self.up.add(name)
        made = spec(
            name,
            gross_ceiling_tokens=gross,
            hard_cap_sequences=cap,
            overrun_chunk_tokens=1_024,
            prefill_tokens_per_second=self.rate,
            decode_seconds_per_token=DECODE_SECONDS,
        )
        self.budgets[name] = made.budget
        self.tell(ReplicaUp(made))

    @precondition(lambda self: self.budgets)
    @rule(
        data=st.data(),
        what=st.sampled_from(["down", "removed", "shrunk", "grown"]),
        last_too=st.sampled_from([False, False, False, False, True]),
    )
    def trouble(self, data: st.DataObject, what: str, *, last_too: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.budgets)))
        if self.up == {name} and not last_too:
            what = "grown"
        match what:
            case "down":
                self.up.discard(name)
                self.tell(ReplicaDown(name))
            case "removed":
                self.up.discard(name)
                del self.budgets[name]
                self.tell(ReplicaRemoved(name))
            case _:
                gross = 5_000 if what == "shrunk" else 60_000
                self.budgets[name] = ReplicaBudget(gross, 0.1, 6, self.rate, DECODE_SECONDS)
                self.tell(BudgetChanged(name, self.budgets[name]))

    @rule(
        bulk=st.none() | st.integers(1_000, 20_000),
        queue_requests=st.sampled_from([0, 2, 6, 30]),
        ladder=st.sampled_from(LADDERS),
    )
    def reload(self, bulk: int | None, queue_requests: int, ladder: Ladder | None) -> None:
        self.queue_requests, self.ladder = queue_requests, ladder
        lanes = lanes_of(queue_requests, bulk)
        self.tell(PolicyChanged(policy_on(pool_on(ladder), tenants=TENANTS, lanes=lanes)))

    @precondition(lambda self: self.ladder)
    @rule(number=st.integers(0, 9), seconds=st.sampled_from([0.5, 10.0, 300.0]))
    def hold(self, number: int, seconds: float) -> None:
        assert self.ladder is not None
        rungs = self.ladder.rungs
        self.tell(RungHeld("main", Hold(rungs[number % len(rungs)].name, self.now + seconds, "a test")))

    @rule()
    def release(self) -> None:
        self.tell(RungReleased("main"))

    @rule(seconds=st.sampled_from([0.01, 0.25, 1.0, 2.0]) | st.floats(0.01, 200.0), punctual=st.booleans())
    def wait(self, seconds: float, *, punctual: bool) -> None:
        until = self.now + seconds
        while punctual and (wakeup := self.controller.next_wakeup()) is not None and wakeup <= until:
            assert wakeup > self.now or self.now == 0.0 or not self.punctual
            self.now = max(self.now, wakeup)
            self.tell(Tick())
            self.punctual = True
        self.now = until
        self.punctual = punctual
        self.tell(Tick())
        self.punctual = True

    @invariant()
    def books_agree(self) -> None:
        assert self.controller.check() == ()
        state = self.controller.state(self.now)
        assert state.live_requests == len(self.live)
        for known in state.replicas:
            held = [one for one in self.held.values() if one.replica == known.name]
            assert known.equation.active_tokens == sum(one.tokens for one in held)
            assert known.equation.active_sequences == sum(one.sequences for one in held)
            assert known.releasing_tokens <= known.equation.active_tokens
        waits = {
            (one.lane, one.priority_class): (one.requests, one.tokens) for one in state.pools[0].queues if one.requests
        }
        for (lane, priority_class), counted in waits.items():
            mine = [one for one in self.waiting.values() if (one.lane, one.priority_class) == (lane, priority_class)]
            assert counted == (len(mine), sum(one.tokens for one in mine))
        assert sum(count for count, _ in waits.values()) == len(self.waiting)

    @invariant()
    def time_is_kept(self) -> None:
        releasing = set(self.held) - set(self.live)
        wakeup = self.controller.next_wakeup()
        assert (wakeup is not None) == bool(releasing or self.waiting or self.ladder)
        for one in self.waiting.values():
            assert self.now < one.residence_ends
            assert all(self.now < at for at in (one.request.deadline, one.request.first_token_deadline) if at)

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        """An equal newcomer would not be dispatched at once where one waits that was tried before it."""
        for one in self.waiting.values():
            same = [w for w in self.waiting.values() if (w.lane, w.priority_class) == (one.lane, one.priority_class)]
            if len(same) > MOST_LOOKED_AT or one.request.key in self.bounced:
                continue
            twin = replace(
                one.request, key=-1, fingerprint=None, deadline=None, first_token_deadline=None, tenant="other"
            )
            twin = replace(
                twin,
                asked_intent=Intent.INTERACTIVE if one.lane is Lane.INTERACTIVE else Intent.BULK,
                asked_class=one.priority_class,
            )
            verdict = self.controller.assess(twin, self.now)
            if verdict.reservation is not None and verdict.reservation.total_tokens < one.tokens:
                continue  # it came after a rung that grants less output
            assert verdict.decision is not Decision.ADMIT, one

    @invariant()
    def rungs_agree(self) -> None:
        assert len(self.controller.rungs_in_force("main")) == self.rung
        for one in self.waiting.values():
            verdict = self.controller.assess(replace(one.request, key=-1, fingerprint=None), self.now)
            assert verdict.reason is not Reason.SHED_PRIORITY, one

    def nobody_lower_is_taken(self, shed: Request, verdict: Verdict) -> None:
        """Whom a rung holds back has nobody of a lower rank before it, however small."""
        assert verdict.lane is not None
        assert verdict.priority_class is not None
        rank = service_rank(verdict.lane, verdict.priority_class)
        assert all(service_rank(one.lane, one.priority_class) <= rank for one in self.waiting.values())
        for lower in range(rank + 1, SERVICE_RANKS):
            lane, priority_class = RANKED[lower]
            intent = Intent.INTERACTIVE if lane is Lane.INTERACTIVE else Intent.BULK
            twin = replace(request(-1, 1, 1), tenant=shed.tenant, asked_intent=intent, asked_class=priority_class)
            assert self.controller.assess(twin, self.now).decision is Decision.REFUSE

    def teardown(self) -> None:
        """Everything ends: then nothing may be left, however long the engines hold on."""
        if not self.arrived:
            return
        self.tell(Draining())
        self.draining = True
        self.ladder = None
        self.tell(PolicyChanged(policy_on(pool_on(None), tenants=TENANTS, lanes=lanes_of(self.queue_requests))))
        while self.live or (wakeup := self.controller.next_wakeup()) is not None:
            if self.live:
                self.tell(Cancelled(self.live.pop(), sent=True))
            else:
                assert wakeup is not None
                self.now = max(self.now, wakeup)
                self.tell(Tick())
        assert self.held == {}
        assert self.waiting == {}
        assert self.ended == set(self.arrived)
        assert sum(replica.equation.active_tokens for replica in self.controller.state(self.now).replicas) == 0
        assert self.controller.check() == ()


class Longer(Door):
    """The same, searched for longer."""


class Longest(Door):
    """The same with a thousand examples of a hundred steps."""


TestDoor = Door.TestCase
TestDoor.settings = settings(max_examples=25, stateful_step_count=40)
TestLonger = pytest.mark.slow(Longer.TestCase)
TestLonger.settings = settings(max_examples=50, stateful_step_count=50)
TestLongest = pytest.mark.soak(pytest.mark.timeout(3_000)(Longest.TestCase))
TestLongest.settings = settings(max_examples=1_000, stateful_step_count=100)
