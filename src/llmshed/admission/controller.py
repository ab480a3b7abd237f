"""The one place where lanes, budgets, queues, ledgers and routing meet."""

from dataclasses import dataclass
from math import inf
from typing import assert_never

from llmshed.admission.actions import Action, Dispatch, Enqueue, Evict, Refuse, Released, RungChanged
from llmshed.admission.decide import Surroundings, decide, lost_again_verdict, unread_refusal
from llmshed.admission.echo import Arrival, Echo, EchoBook
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
    ReplicaRead,
    ReplicaRemoved,
    ReplicaUp,
    RungHeld,
    RungReleased,
    Tick,
)
from llmshed.admission.policy import AdmissionPolicy
from llmshed.admission.queueing.waiting import Waiting
from llmshed.admission.request import Request
from llmshed.admission.service.charging import charge_of, reservation_of
from llmshed.admission.service.evicting import displaced_verdict, expired_verdict, moved_actions
from llmshed.admission.service.hearing import hear_arrival, hear_leaving, hear_refusal, hear_wait
from llmshed.admission.service.invariants import broken_between
from llmshed.admission.service.known import insist_known
from llmshed.admission.service.ladders import Ladders
from llmshed.admission.service.pool import Pool
from llmshed.admission.service.replica import AwaitedReplica
from llmshed.admission.service.roster import Roster
from llmshed.admission.service.serving import next_start
from llmshed.admission.service.starting import admitted_verdict, make_room, waiting_of
from llmshed.admission.state import ControllerState
from llmshed.admission.tenancy import TenantUse
from llmshed.admission.verdict import Decision, Verdict
from llmshed.ladder.model import Rung
from llmshed.ladder.standing import Step

PAUSE_SECONDS = 1.0
"""A wait that is found over so much later than it was tells that nobody told the time: the process stood still, and
what it then hears together says nothing of how long refused requests would have waited."""
_UNHEARD = Echo(Arrival.FIRST)


@dataclass(slots=True)
class _Live:
    """A dispatched request that has not ended; `policy` is the snapshot that it came under."""

    request: Request
    verdict: Verdict
    replica: str
    policy: AdmissionPolicy


class AdmissionController:
    """Decides for all pools of one gateway.

    Invariants, stated by `check`: every ledger's sums equal its charges; every live request holds exactly one charge,
    on the replica that it was sent to; every other charge is releasing; who waits is in one queue and runs nowhere;
    what tenants hold sums to ledgers and queues; nothing is remembered of a request that ended.
    """

    def __init__(self, policy: AdmissionPolicy, now: float = 0.0) -> None:
        """Start with no replicas: they come up by events. The first windows of ladders begin now."""
        self._policy = policy
        self._roster = Roster(policy)
        self._pools = self._roster.pools
        self._replicas = self._roster.replicas
        self._ladders = Ladders(self._pools, policy, now)
        self._live: dict[int, _Live] = {}
        self._lost_once: set[int] = set()  # live or waiting requests whose first replica was lost before it read them
        self._tenant_use = TenantUse()
        self._echoes = EchoBook()
        self._draining = False

    @property
    def policy(self) -> AdmissionPolicy:
        """Return the policy that new requests come under."""
        return self._policy

    @property
    def draining(self) -> bool:
        """Say whether every later arrival is refused because the gateway shuts down."""
        return self._draining

    def handle(self, event: Event, now: float) -> list[Action]:  # noqa: C901, PLR0912 - one flat case an event
        """Take one fact and return what is to be done about it.

        Raises:
            KeyError: the event names a request that is neither live nor waiting, a replica that never came up, or a
                pool without a ladder.
            ValueError: a request arrives under a key that is in use, or a rung is held that is not there.

        Whatever is raised, nothing was done: neither the event nor what fell due before it.
        """
        insist_known(event, self._live, self._roster, self._ladders)  # before what fell due is done and told
        actions = self._free_due(now)
        # Before waits end: whose client left is answered nothing, though its wait is over by the same reading.
        left_queue = isinstance(event, Cancelled) and self._leave_queue(event.key, now)
        actions += self._evict_expired(now)
        if self._ladders.due_at <= now:
            actions += self._follow(self._ladders.advance(now), now)
        match event:
            case Arrived(request):
                actions += self._serve_due(now)  # it may pass only those who were tried
                actions += self._arrive(request, now)
            case FirstToken(key):
                self._first_token(key, now)
            case Finished(key, output_tokens):
                actions.append(self._finish(key, output_tokens, now))
            case Failed(key, engine_holds):
                actions += self._abandon(key, now, engine_holds=engine_holds)
            case Cancelled(key, sent):
                if not left_queue:
                    actions += self._abandon(key, now, engine_holds=sent)
            case NotSent(key):
                actions += self._send_elsewhere(key, now)
            case ReplicaUp(spec):
                self._roster.come_up(spec, now)
            case ReplicaDown(name):
                self._replicas[name].up = False
                actions += self._rehome(name, now)
            case ReplicaRemoved(name):
                actions += self._remove(name, now)
            case BudgetChanged(name, budget):
                self._roster.change_budget(name, budget, now)
            case PolicyChanged(policy):
                self._policy = policy
                self._roster.change_policy(policy, now)
                actions += self._follow(self._ladders.change_policy(policy, now), now, *self._pools)
            case RungHeld(name, hold):
                actions += self._follow(self._ladders.hold(name, hold, now), now)
            case RungReleased(name):
                actions += self._follow(self._ladders.release(name), now)
            case ReplicaRead(name, kv_used_ratio, preemptions_over_budget):
                self._replicas[name].told(kv_used_ratio, preemptions_over_budget)
            case Draining():
                self._draining = True
            case Tick():
                pass
            case _:
                assert_never(event)
        for pool in self._pools.values():
            pool.learnt.advance(now)
        return actions + self._serve_due(now)

    def next_wakeup(self) -> float | None:
        """Return the clock reading at which the core wants a `Tick`; None while nothing is timed."""
        times: list[float | None] = [self._ladders.due_at]
        times += [replica.ledger.next_release() for replica in self._replicas.values()]
        times += [pool.next_wakeup() for pool in self._pools.values()]
        first = min(at for at in times if at is not None)
        return None if first == inf else first

    def rungs_in_force(self, pool: str) -> tuple[Rung, ...]:
        """Return the rungs in force on a pool, first to last; none where it has no ladder, or is not known."""
        ladder = self._ladders.of(pool)
        return () if ladder is None else ladder.in_force

    def gate(self, tenant: str, now: float) -> Verdict | None:
        """Return the refusal that needs no body to be read (draining, no replica at all, quota), or None."""
        return unread_refusal(tenant, self._surroundings(self._policy), now)

    def assess(self, request: Request, now: float) -> Verdict:
        """Return the verdict that the request would get now, changing nothing."""
        return decide(request, self._surroundings(self._policy), self._echoes.look(request, now), now)

    def state(self, now: float) -> ControllerState:
        """Return a snapshot of every ledger and queue."""
        return ControllerState(
            replicas=tuple(replica.state_at(now) for replica in self._replicas.values()),
            draining=self._draining,
            live_requests=len(self._live),
            pools=tuple(pool.state(now) for pool in self._pools.values()),
            arrivals=dict(self._echoes.totals),
        )

    def check(self) -> tuple[str, ...]:
        """Return the invariants that do not hold, as sentences; empty when all do."""
        sent_to = {key: live.replica for key, live in self._live.items()}
        wrong = [
            *broken_between(self._roster, sent_to, self._tenant_use),
            *self._echoes.check(),
            *self._ladders.check(),
        ]
        nowhere = {key for key in self._lost_once if key not in sent_to and self._roster.where_waits(key) is None}
        wrong += [f"request {key} is remembered as lost once and is nowhere" for key in sorted(nowhere)]
        return tuple(wrong)

    def _arrive(self, request: Request, now: float) -> list[Action]:
        echo = self._echoes.arrival(request, now)
        verdict = decide(request, self._surroundings(self._policy), echo, now)
        hear_arrival(request, verdict, self._roster, self._policy.lanes, now)
        return self._commit(request, self._policy, verdict, now, now)

    def _commit(
        self, request: Request, policy: AdmissionPolicy, verdict: Verdict, since: float, now: float
    ) -> list[Action]:
        """Do what a verdict says: the only place that charges a request which comes from outside.

        `since` is when it began to wait, if it waits on; else now.
        """
        match verdict.decision:
            case Decision.ADMIT:
                pool = self._pools[verdict.pool or ""]
                replica = pool.replicas[verdict.replica or ""]
                self._tenant_use.charge(request.tenant, reservation_of(verdict))
                return [self._dispatch(request, policy, verdict, replica, now)]
            case Decision.QUEUE:
                return self._enqueue(request, policy, verdict, since, now)
            case Decision.REFUSE:
                hear_refusal(request, verdict, self._echoes, self._pools, now)
                return [Refuse(request.key, verdict)]
            case _ as unreachable:
                assert_never(unreachable)

    def _dispatch(
        self, request: Request, policy: AdmissionPolicy, verdict: Verdict, replica: AwaitedReplica, now: float
    ) -> Dispatch:
        """Charge a request, whose tenant is charged already, to a replica."""
        charge = charge_of(request, verdict, now)
        weight = policy.tenants[request.tenant].weight
        self._pools[replica.spec.pool].take(charge, replica, verdict, weight, now)
        self._echoes.served(request.fingerprint)
        self._live[request.key] = _Live(request, verdict, replica.spec.name, policy)
        return Dispatch(request.key, replica.spec.name, verdict)

    def _enqueue(
        self, request: Request, policy: AdmissionPolicy, verdict: Verdict, since: float, now: float
    ) -> list[Action]:
        pool = self._pools[verdict.pool or ""]
        waiting = waiting_of(request, policy, verdict, pool, since, now)
        actions: list[Action] = [
            self._evict(out, pool, displaced_verdict(out, waiting, pool, now), now)
            for out in make_room(waiting, pool, now)
        ]
        pool.join(waiting, now)
        self._tenant_use.charge(request.tenant, waiting.reservation)
        return [*actions, Enqueue(request.key, pool.name, verdict)]

    def _serve_due(self, now: float) -> list[Action]:
        return [action for pool in self._pools.values() if pool.is_due(now) for action in self._serve(pool, now)]

    def _serve(self, pool: Pool, now: float) -> list[Action]:
        """Dispatch all who may start in a pool, in the order of service."""
        actions: list[Action] = []
        while (found := next_start(pool, now)) is not None:
            waiting, replica = found
            pool.leave(waiting.key, now)
            verdict = admitted_verdict(waiting, replica, pool, now)
            self._tenant_use.free(waiting.tenant, waiting.reservation)
            self._tenant_use.charge(waiting.tenant, reservation_of(verdict))
            hear_wait(waiting, pool, now, now)
            if pool.laddering is not None:
                hear_leaving(waiting, pool, now)
            actions.append(self._dispatch(waiting.request, waiting.policy, verdict, replica, now))
        return actions

    def _first_token(self, key: int, now: float) -> None:
        replica = self._replicas[self._live[key].replica]
        replica.first_token(key, now)
        self._pools[replica.spec.pool].changed = True

    def _finish(self, key: int, output_tokens: int | None, now: float) -> Action:
        live = self._end(key)
        if output_tokens is not None:
            replica = self._replicas[live.replica]
            charge, pool = replica.ledger[key], self._pools[replica.spec.pool]
            # What an engine tells beyond what it may have made would shut its tenant out, and rule every forecast.
            output_tokens = min(max(output_tokens, 0), charge.reservation.most_output_tokens)
            pool.learn_answer(replica, charge, output_tokens, now)
            pool.settle(charge, live.policy.tenants[charge.tenant].weight, output_tokens)
        return self._free(live.replica, key, now)

    def _abandon(self, key: int, now: float, *, engine_holds: bool) -> list[Action]:
        """End a dispatched request whose answer nobody takes; its tokens stay while the engine may work on it."""
        live = self._end(key)
        if not engine_holds:
            return [self._free(live.replica, key, now)]
        replica = self._replicas[live.replica]
        replica.ledger.begin_release(key, replica.release_time(replica.ledger[key], now))
        return []

    def _end(self, key: int) -> _Live:
        self._lost_once.discard(key)
        return self._live.pop(key)

    def _send_elsewhere(self, key: int, now: float) -> list[Action]:
        """Send a request that its replica never read to another one, once, under the policy that it came under."""
        live = self._live.pop(key)
        self._replicas[live.replica].window.refund(key, now)
        released = self._free(live.replica, key, now)
        if key in self._lost_once:
            self._lost_once.discard(key)
            return [released, Refuse(key, lost_again_verdict(live.verdict))]
        verdict = decide(live.request, self._surroundings(live.policy), _UNHEARD, now, without=live.replica)
        actions = self._commit(live.request, live.policy, verdict, now, now)
        if verdict.decision is not Decision.REFUSE:
            self._lost_once.add(key)
        if (pool := self._roster.where_waits(key)) is not None:
            pool.keep_off(key, live.replica)
        return [released, *actions]

    def _leave_queue(self, key: int, now: float) -> bool:
        """Take a request out of its queue whose client left; False if it waits in none."""
        pool = self._roster.where_waits(key)
        if pool is None:
            return False
        self._forget_wait(waiting := pool.leave(key, now))
        hear_leaving(waiting, pool, now)
        return True

    def _forget_wait(self, waiting: Waiting) -> None:
        """Give back what a request held that left its queue without a dispatch."""
        self._tenant_use.free(waiting.tenant, waiting.reservation)
        self._lost_once.discard(waiting.key)

    def _evict(self, waiting: Waiting, pool: Pool, verdict: Verdict, now: float) -> Evict:
        """Answer a request that was taken out of its queue."""
        self._forget_wait(waiting)
        hear_leaving(waiting, pool, now, verdict)
        hear_refusal(waiting.request, verdict, self._echoes, self._pools, now)
        return Evict(waiting.key, verdict)

    def _evict_expired(self, now: float) -> list[Action]:
        actions: list[Action] = []
        for pool in self._pools.values():
            for waiting in pool.take_expired(now):
                hear_wait(waiting, pool, waiting.expires_at, now)
                if now - waiting.expires_at > PAUSE_SECONDS:
                    pool.learnt.ghosts.clear()
                actions.append(self._evict(waiting, pool, expired_verdict(waiting, pool, now), now))
        return actions

    def _free(self, name: str, key: int, now: float) -> Action:
        """Give a charge back: every ending comes through here, once."""
        replica = self._replicas[name]
        charge = self._pools[replica.spec.pool].give_back(replica, key, now)
        self._tenant_use.free(charge.tenant, charge.reservation)
        if replica.removed and len(replica.ledger) == 0:
            self._roster.forget(name)
        return Released(key, name, charge.reservation.total_tokens)

    def _free_due(self, now: float) -> list[Action]:
        due = [(name, key) for name, replica in self._replicas.items() for key in replica.ledger.take_due(now)]
        return [self._free(name, key, now) for name, key in due]

    def _remove(self, name: str, now: float) -> list[Action]:
        replica = self._replicas[name]
        replica.up, replica.removed = False, True
        actions = self._rehome(name, now)
        if len(replica.ledger) == 0:
            self._roster.forget(name)
        return actions

    def _rehome(self, name: str, now: float) -> list[Action]:
        """Find another place for all who wait for a replica that takes nothing more."""
        pool = self._pools[self._replicas[name].spec.pool]
        pool.learnt.ghosts.forget(name)
        actions: list[Action] = []
        for waiting in pool.waiting_for(name):
            displaced = waiting.key not in pool  # by one of those before it, for whom a queue was full
            if not displaced and not pool.move_to_another(waiting):
                actions += self._ask_anew(waiting, pool, now)
        return actions

    def _ask_anew(self, waiting: Waiting, pool: Pool, now: float) -> list[Action]:
        """Take a request out of its queue and decide on it as on a newcomer, under the policy that it came under."""
        lost_once = waiting.key in self._lost_once
        self._forget_wait(pool.leave(waiting.key, now))
        verdict = decide(waiting.request, self._surroundings(waiting.policy), _UNHEARD, now)
        done = self._commit(waiting.request, waiting.policy, verdict, waiting.joined_at, now)
        if verdict.decision is Decision.REFUSE:
            hear_leaving(waiting, pool, now, verdict)
        elif lost_once:
            self._lost_once.add(waiting.key)
        return moved_actions(done, waiting.key)

    def _follow(self, steps: list[Step], now: float, *changed: str) -> list[Action]:
        """Tell steps, and send away who waits where a rung now holds its like back; `changed` are further pools."""
        actions: list[Action] = [RungChanged(step) for step in steps]
        names = dict.fromkeys((*changed, *(step.pool for step in steps)))
        for pool in [self._pools[name] for name in names if name in self._pools]:
            for waiting in pool.held_back():
                if waiting.key in pool:
                    actions += self._ask_anew(waiting, pool, now)
        return actions

    def _surroundings(self, policy: AdmissionPolicy) -> Surroundings:
        return Surroundings(policy, self._pools, self._tenant_use, self._draining, degraded=self._ladders.in_force)
