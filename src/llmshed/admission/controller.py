"""The one place where lanes, budgets, ledgers and routing meet."""

from dataclasses import dataclass
from typing import assert_never

from llmshed.admission.actions import Action, Dispatch, Refuse, Released
from llmshed.admission.decide import (
    Surroundings,
    decide,
    draining_verdict,
    lost_again_verdict,
    unknown_tenant_verdict,
    unserved_verdict,
)
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
    Tick,
)
from llmshed.admission.ledger import Charge
from llmshed.admission.policy import AdmissionPolicy, ReplicaSpec
from llmshed.admission.replica import Replica
from llmshed.admission.request import Request
from llmshed.admission.state import ControllerState
from llmshed.admission.tenancy import TenantUse, seats_refusal
from llmshed.admission.verdict import Decision, Verdict


@dataclass(slots=True)
class _Live:
    """A dispatched request that has not ended; `policy` is the snapshot that it came under."""

    request: Request
    verdict: Verdict
    replica: str
    policy: AdmissionPolicy
    redispatched: bool = False


class AdmissionController:
    """Decides for all pools of one gateway.

    Invariants, stated by `check`: every ledger's sums equal its charges; every live request holds exactly one charge,
    on the replica that it was sent to; every other charge is releasing; what tenants hold sums to the ledgers.
    """

    def __init__(self, policy: AdmissionPolicy) -> None:
        """Start with no replicas: they come up by events."""
        self._policy = policy
        self._replicas: dict[str, Replica] = {}
        self._live: dict[int, _Live] = {}
        self._tenant_use = TenantUse()
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
            KeyError: the event names a request that is not live, or a replica that never came up.
            ValueError: a request arrives under a key that is in use.
        """
        actions = self._free_due(now)
        match event:
            case Arrived(request):
                actions.append(self._arrive(request, now))
            case FirstToken(key):
                self._replicas[self._live[key].replica].ledger.first_token(key, now)
            case Finished(key):
                actions.append(self._end(key))
            case Failed(key, engine_holds):
                actions += self._abandon(key, now, engine_holds=engine_holds)
            case Cancelled(key, sent):
                actions += self._abandon(key, now, engine_holds=sent)
            case NotSent(key):
                actions += self._send_elsewhere(key, now)
            case ReplicaUp(spec):
                self._come_up(spec)
            case ReplicaDown(name):
                self._replicas[name].up = False
            case ReplicaRemoved(name):
                self._remove(name)
            case BudgetChanged(name, budget):
                self._replicas[name].budget = budget
            case PolicyChanged(policy):
                self._policy = policy
            case Draining():
                self._draining = True
            case Tick():
                pass
            case _:
                assert_never(event)
        return actions

    def next_wakeup(self) -> float | None:
        """Return the clock reading at which the core wants a `Tick`; None while nothing is timed."""
        times = (replica.ledger.next_release() for replica in self._replicas.values())
        return min((at for at in times if at is not None), default=None)

    def gate(self, tenant: str, now: float) -> Verdict | None:
        """Return the refusal that needs no body to be read (draining, no replica at all, quota), or None."""
        if self._draining:
            return draining_verdict()
        if not any(replica.up for replica in self._replicas.values()):
            return unserved_verdict(known=bool(self._replicas))
        known = self._policy.tenants.get(tenant)
        if known is None:
            return unknown_tenant_verdict()
        return seats_refusal(known, self._tenant_use, self._replicas.values(), now)

    def assess(self, request: Request, now: float) -> Verdict:
        """Return the verdict that the request would get now, changing nothing."""
        return decide(request, self._surroundings(self._policy), now)

    def state(self) -> ControllerState:
        """Return a snapshot of every ledger."""
        return ControllerState(
            replicas=tuple(replica.state() for replica in self._replicas.values()),
            draining=self._draining,
            live_requests=len(self._live),
        )

    def check(self) -> tuple[str, ...]:
        """Return the invariants that do not hold, as sentences; empty when all do."""
        wrong = [f"{name}: {text}" for name, r in self._replicas.items() for text in r.ledger.check()]
        for key, live in self._live.items():
            holders = [name for name, replica in self._replicas.items() if key in replica.ledger]
            if holders != [live.replica]:
                wrong.append(f"request {key} was sent to {live.replica} and is charged on {holders}")
        charges = [(name, charge) for name, r in self._replicas.items() for charge in r.ledger]
        wrong += [
            f"{name}: request {charge.key} is charged but neither live nor releasing"
            for name, charge in charges
            if charge.key not in self._live and charge.release_at is None
        ]
        if sum(self._tenant_use.tokens.values()) != sum(r.ledger.active_tokens for r in self._replicas.values()):
            wrong.append("what tenants hold differs from what replicas lent")
        if sum(self._tenant_use.requests.values()) != len(charges):
            wrong.append("requests counted by tenant differ from the charges")
        return tuple(wrong)

    def _arrive(self, request: Request, now: float) -> Action:
        if request.key in self._live:
            raise ValueError(f"request {request.key} is already live")
        return self._send(request, self._policy, self.assess(request, now), now, redispatched=False)

    def _send(
        self, request: Request, policy: AdmissionPolicy, verdict: Verdict, now: float, *, redispatched: bool
    ) -> Action:
        """Charge an admitted request where the verdict says, or refuse it."""
        if verdict.decision is not Decision.ADMIT:
            return Refuse(request.key, verdict)
        if verdict.replica is None or verdict.reservation is None or verdict.lane is None:
            raise ValueError("an admitting verdict names replica, lane and reservation")
        charge = Charge(
            key=request.key,
            tenant=request.tenant,
            lane=verdict.lane,
            reservation=verdict.reservation,
            output_ceiling_tokens=verdict.output_ceiling_tokens or 0,
            dispatched_at=now,
            streamed=request.streamed,
        )
        self._replicas[verdict.replica].ledger.charge(charge)
        self._tenant_use.charge(charge.tenant, charge.reservation)
        self._live[request.key] = _Live(request, verdict, verdict.replica, policy, redispatched)
        return Dispatch(request.key, verdict.replica, verdict)

    def _end(self, key: int) -> Action:
        return self._free(self._live.pop(key).replica, key)

    def _abandon(self, key: int, now: float, *, engine_holds: bool) -> list[Action]:
        """End a request whose answer nobody takes; its tokens stay while the engine may still work on it."""
        if not engine_holds:
            return [self._end(key)]
        replica = self._replicas[self._live.pop(key).replica]
        replica.ledger.begin_release(key, replica.release_time(replica.ledger[key], now))
        return []

    def _send_elsewhere(self, key: int, now: float) -> list[Action]:
        """Send a request that its replica never read to another one, once, under the policy that it came under."""
        live = self._live.pop(key)
        released = self._free(live.replica, key)
        if live.redispatched:
            return [released, Refuse(key, lost_again_verdict(live.verdict))]
        around = self._surroundings(live.policy)
        verdict = decide(live.request, around, now, without=live.replica)
        return [released, self._send(live.request, live.policy, verdict, now, redispatched=True)]

    def _free(self, name: str, key: int) -> Action:
        """Give a charge back: every ending comes through here, once."""
        replica = self._replicas[name]
        charge = replica.ledger.free(key)
        self._tenant_use.free(charge.tenant, charge.reservation)
        if replica.removed and len(replica.ledger) == 0:
            del self._replicas[name]
        return Released(key, name, charge.reservation.total_tokens)

    def _free_due(self, now: float) -> list[Action]:
        due = [(name, key) for name, replica in self._replicas.items() for key in replica.ledger.due(now)]
        return [self._free(name, key) for name, key in due]

    def _come_up(self, spec: ReplicaSpec) -> None:
        known = self._replicas.get(spec.name)
        if known is None:
            self._replicas[spec.name] = Replica(spec)
        else:
            known.come_up(spec)

    def _remove(self, name: str) -> None:
        replica = self._replicas[name]
        replica.up = False
        replica.removed = True
        if len(replica.ledger) == 0:
            del self._replicas[name]

    def _surroundings(self, policy: AdmissionPolicy) -> Surroundings:
        return Surroundings(policy, self._replicas.values(), self._tenant_use, self._draining)
