"""Who is where: replicas and the requests that were sent to them, kept alike for every policy."""

from collections.abc import Collection
from dataclasses import dataclass

from llmshed.admission.actions import Dispatch, Released
from llmshed.admission.ledger import Charge
from llmshed.admission.policy import ReplicaBudget, ReplicaSpec
from llmshed.admission.replica import Replica
from llmshed.admission.verdict import Decision
from llmshed.whatif.gates.work import Work


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that was sent to a replica and has not ended; `again` after its first replica was lost unread."""

    work: Work
    replica: str
    again: bool


class Books:
    """The ledgers of all replicas, and the requests that run.

    A policy that counts requests reads the length of a ledger, one that counts tokens its sums. Invariants, stated by
    `check`: every ledger's sums equal its charges; every running request holds one charge, on the replica that it was
    sent to; every other charge is releasing.
    """

    def __init__(self) -> None:
        """Start with no replicas: they come up by events."""
        self._replicas: dict[str, Replica] = {}
        self._sent: dict[int, Sent] = {}

    @property
    def replicas(self) -> Collection[Replica]:
        """Return every replica that is known, up or not."""
        return self._replicas.values()

    @property
    def running(self) -> Collection[int]:
        """Return the requests that were sent and have not ended, in the order in which they were sent."""
        return self._sent.keys()

    def sent(self, key: int) -> Sent:
        """Return where a running request is.

        Raises:
            KeyError: it does not run.
        """
        return self._sent[key]

    def send(self, work: Work, replica: Replica, now: float, *, again: bool = False) -> Dispatch:
        """Charge a request to a replica."""
        verdict = work.verdict(Decision.ADMIT, replica)
        terms = work.terms(replica)
        replica.ledger.charge(
            Charge(
                key=work.key,
                tenant=work.request.tenant,
                lane=work.chosen.lane,
                reservation=terms.reservation,
                output_ceiling_tokens=terms.ceiling_tokens,
                dispatched_at=now,
                streamed=work.request.streamed,
            )
        )
        self._sent[work.key] = Sent(work, replica.spec.name, again)
        return Dispatch(work.key, replica.spec.name, verdict)

    def first_token(self, key: int, now: float) -> None:
        """Note that a request's prefill is over."""
        self._replicas[self._sent[key].replica].ledger.first_token(key, now)

    def end(self, key: int) -> Released:
        """Free what a request holds: its engine let go of it."""
        return self._free(self._sent.pop(key).replica, key)

    def abandon(self, key: int, now: float) -> None:
        """End a request that its engine may still hold; it is freed when the engine has surely noticed."""
        replica = self._replicas[self._sent.pop(key).replica]
        replica.ledger.begin_release(key, replica.release_time(replica.ledger[key], now))

    def free_due(self, now: float) -> list[Released]:
        """Free what was abandoned and is surely noticed by now."""
        due = [(name, key) for name, replica in self._replicas.items() for key in replica.ledger.take_due(now)]
        return [self._free(name, key) for name, key in due]

    def next_release(self) -> float | None:
        """Return when `free_due` has something to free; None when nothing is releasing."""
        times = (replica.ledger.next_release() for replica in self._replicas.values())
        return min((at for at in times if at is not None), default=None)

    def come_up(self, spec: ReplicaSpec) -> None:
        """Let a replica serve, with these numbers."""
        known = self._replicas.get(spec.name)
        if known is None:
            self._replicas[spec.name] = Replica(spec)
        else:
            known.come_up(spec)

    def go_down(self, name: str) -> None:
        """Send nothing new to a replica."""
        self._replicas[name].up = False

    def change_budget(self, name: str, budget: ReplicaBudget) -> None:
        """Let a replica lend something else from now on."""
        self._replicas[name].budget = budget

    def remove(self, name: str) -> None:
        """Send nothing new to a replica, and forget it when nothing runs there any more."""
        replica = self._replicas[name]
        replica.up = False
        replica.removed = True
        if len(replica.ledger) == 0:
            del self._replicas[name]

    def check(self) -> list[str]:
        """Return the invariants that do not hold, as sentences."""
        wrong = [f"{name}: {text}" for name, replica in self._replicas.items() for text in replica.ledger.check()]
        for key, sent in self._sent.items():
            holders = [name for name, replica in self._replicas.items() if key in replica.ledger]
            if holders != [sent.replica]:
                wrong.append(f"request {key} was sent to {sent.replica} and is charged on {holders}")
        wrong += [
            f"{name}: request {charge.key} is charged but neither running nor releasing"
            for name, replica in self._replicas.items()
            for charge in replica.ledger
            if charge.key not in self._sent and charge.release_at is None
        ]
        return wrong

    def _free(self, name: str, key: int) -> Released:
        replica = self._replicas[name]
        charge = replica.ledger.free(key)
        if replica.removed and len(replica.ledger) == 0:
            del self._replicas[name]
        return Released(key, name, charge.reservation.total_tokens)
