"""The gateway as its handlers see it: the parts that serve requests, the settings in force, and who is in the house."""

import asyncio
from dataclasses import dataclass, replace
from http import HTTPStatus

from llmshed.admission.events import Draining
from llmshed.admission.options import roomiest_maximums
from llmshed.admission.policy import AdmissionPolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane
from llmshed.admission.verdict import AcceptedMaximums, Verdict
from llmshed.clock import Clock
from llmshed.gateway.conversations import Conversations
from llmshed.gateway.counting.pool import CountingPool
from llmshed.gateway.daemon.snapshot import Snapshot
from llmshed.gateway.door.listener import Listener
from llmshed.gateway.door.parsing import BodyThread
from llmshed.gateway.door.unchanged import RefusedSizes
from llmshed.gateway.door.visit import Visit
from llmshed.gateway.driver import Driver
from llmshed.gateway.hashing import Hasher
from llmshed.gateway.ladders.book import LadderBook
from llmshed.gateway.ladders.evaluations import Evaluations
from llmshed.gateway.ladders.passes import Passes
from llmshed.gateway.relay.upstream import UpstreamClient
from llmshed.gateway.replicas.fleet import Fleet
from llmshed.ladder.standing import Step
from llmshed.observability.decisions import DecisionLog
from llmshed.observability.observer import Observer


@dataclass(frozen=True, slots=True)
class Parts:
    """What a gateway is made of, whatever its settings are at the time.

    Args:
        clock: the only clock.
        driver: the only caller of the core.
        fleet: the replicas, with their engines, tokenizers and health.
        parsing: the thread that reads large bodies.
        counting: the pool that counts prompts.
        observer: the only way into metrics and decision log.
        decision_log: the decisions that are remembered.
        hasher: keyed hashes of sessions.
        upstream: the way to the replicas.
    """

    clock: Clock
    driver: Driver
    fleet: Fleet
    parsing: BodyThread
    counting: CountingPool
    observer: Observer
    decision_log: DecisionLog
    hasher: Hasher
    upstream: UpstreamClient


class Gateway:
    """One running gateway."""

    def __init__(self, parts: Parts, snapshot: Snapshot) -> None:
        """Start with nobody in the house; `listen` says where the doors are."""
        self.clock = parts.clock
        self.driver = parts.driver
        self.fleet = parts.fleet
        self.parsing = parts.parsing
        self.counting = parts.counting
        self.observer = parts.observer
        self.decision_log = parts.decision_log
        self.hasher = parts.hasher
        self.upstream = parts.upstream
        self.conversations = Conversations()
        self.refused_sizes = RefusedSizes()
        self.evaluations = Evaluations(parts.fleet.facts)
        self.passes = Passes()
        self.ladder_book = LadderBook(parts.driver, parts.clock, snapshot.config.ladder, lambda: self._snapshot.version)
        parts.driver.on_step = self._stepped
        self.data_url = ""
        self.admin_url = ""
        self._data: Listener | None = None
        self._snapshot = snapshot
        self._visits: set[Visit] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def snapshot(self) -> Snapshot:
        """Return the settings that new requests come under."""
        return self._snapshot

    @property
    def draining(self) -> bool:
        """Say whether the gateway shuts down."""
        return self.driver.draining

    @property
    def policy(self) -> AdmissionPolicy:
        """Return the numbers that admission decides new requests by."""
        return self.driver.policy

    def listen(self, data: Listener, admin_url: str) -> None:
        """Note where the doors are."""
        self._data = data
        self.data_url = data.url
        self.admin_url = admin_url

    def use(self, snapshot: Snapshot) -> None:
        """Put other settings in force for requests that come from now on; those in the house keep theirs."""
        self._snapshot = snapshot

    def enter(self, visit: Visit) -> None:
        """Let a request in; `leave` is owed for it."""
        self._visits.add(visit)
        self._empty.clear()

    def leave(self, visit: Visit) -> None:
        """Let a request out, whatever became of it."""
        self._visits.discard(visit)
        if not self._visits:
            self._empty.set()

    def running(self) -> int:
        """Return how many requests are in the house."""
        return len(self._visits)

    async def idle(self) -> None:
        """Wait until no request is in the house."""
        await self._empty.wait()

    def _stepped(self, step: Step) -> None:
        """Hear of a change of the rung in force on a pool."""
        self.observer.ladder_stepped(step)
        self.ladder_book.heard(step)

    def begin_draining(self) -> None:
        """Refuse new work from now on; connections are told to close with their next answer."""
        self.driver.tell(Draining())
        if self._data is not None:
            self._data.retire()

    def stop_listening(self) -> None:
        """Close the data listener and its idle connections."""
        if self._data is not None:
            self._data.stop_listening()

    def break_off(self) -> None:
        """End every request that is still in the house with an error that says so."""
        for relay in {visit.snapshot.relay for visit in self._visits}:
            relay.break_off()
        for visit in self._visits:
            visit.break_off()

    def gate(self, tenant: str) -> Verdict | None:
        """Return the refusal that needs no body to be read, or None.

        The core knows only that no replica has come up; where that is for a tokenizer, it is told so. What cannot be
        served now is told the accepted maximums of the lane that takes most, since nothing was classified.
        """
        verdict = self.driver.gate(tenant)
        if verdict is None:
            return None
        if verdict.retry_after_seconds is not None:
            # The core made it for this call alone; a copy would be a twelfth of a refusal whose body is not read.
            verdict.maximums = self._widest_maximums()
        if verdict.reason not in {Reason.STARTING, Reason.NO_REPLICA}:
            return verdict
        if not self.fleet.tokenizers_fail:
            return verdict
        unavailable = Reason.TOKENIZER_UNAVAILABLE
        return replace(verdict, reason=unavailable, detail=unavailable.row.meaning)

    def _widest_maximums(self) -> AcceptedMaximums | None:
        """Return the limits of the lane that takes most, by the roomiest replica; None where no bound is known."""
        lanes = {lane for pool in self.policy.pools for lane in pool.lanes}
        widest = Lane.BULK if Lane.BULK in lanes else Lane.INTERACTIVE
        maximums = roomiest_maximums(self.policy.lanes[widest], self.fleet.limits())
        return None if maximums == (None, None, None) else maximums

    def unserving(self) -> Verdict | None:
        """Return why nobody is served now: draining, starting, or no replica up; None while somebody is."""
        tenant = next(iter(self.policy.tenants))
        verdict = self.gate(tenant)
        # A full quota is that tenant's own affair.
        return verdict if verdict is not None and verdict.status == HTTPStatus.SERVICE_UNAVAILABLE else None

    def checks(self) -> dict[str, bool]:
        """Return what readiness consists of, by name."""
        return {
            "not_draining": not self.draining,
            "replica_up": any(replica.up for replica in self.driver.state().replicas),
            "ledger_holds": not self.driver.violations(),
        }
