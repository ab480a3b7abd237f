"""Observe mode: the core decides, keeps its queues and its ledger as if it were obeyed, and everybody is let through.

A request is sent at once, whatever the core answers. What the core holds of it lives on beside the exchange:

    answered by    the core holds       until
    Dispatch       its charge           the exchange ends
    Enqueue        its place in line    the core dispatches or evicts it, or the exchange ends first
    Refuse         nothing

So the ledger is that of a gateway which refuses: what it would have refused weighs on the engines and charges nothing.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from http import HTTPStatus
from typing import assert_never

from llmshed.admission.actions import Dispatch, Enqueue, Evict, Refuse
from llmshed.admission.decide import lost_again_verdict
from llmshed.admission.events import Arrived, Cancelled, Event, Finished, FirstToken, NotSent
from llmshed.admission.policy import ReplicaSpec
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Request
from llmshed.admission.verdict import Decision, Verdict
from llmshed.gateway.driver import Driver
from llmshed.gateway.ticket import Ticket
from llmshed.gateway.would import Would

_TOO_LARGE = frozenset({Reason.CONTEXT_LIMIT, Reason.OUTPUT_LIMIT, Reason.LANE_LIMIT})
"""Permanent refusals that are the core's own: the engine behind has an answer to each."""


class _Standing(Enum):
    """What the core holds of a request."""

    NOTHING = "nothing"
    QUEUED = "queued"
    CHARGED = "charged"


@dataclass(slots=True, eq=False)
class _Passage:
    """One request that was let through.

    Args:
        request: the request.
        tell: tells the core a fact of it.
        verdict: what the core, or whoever spoke in its place, decided at its arrival.
        would: what would have become of it.
        standing: what the core holds of it.
        charged_on: replica that it is charged on; None while it is not.
        replica: replica that it was sent to.
        sent_at: loop time when it was sent there; None before.
        waited_seconds: how long after that it was charged.
        prefill_seconds: from then to its first token; None before that.
        first_token: tells the core of it later; None while nothing is to be told.
        moved: whether a second replica was tried.
    """

    request: Request
    tell: Callable[[Event], None]
    verdict: Verdict | None = None
    would: Would | None = None
    standing: _Standing = _Standing.NOTHING
    charged_on: str | None = None
    replica: str | None = None
    sent_at: float | None = None
    waited_seconds: float = 0.0
    prefill_seconds: float | None = None
    first_token: asyncio.TimerHandle | None = None
    moved: bool = False

    @property
    def holds_charge(self) -> bool:
        """Say whether the core has charged it."""
        return self.standing is _Standing.CHARGED

    @property
    def waits(self) -> bool:
        """Say whether it stands in the core's queue."""
        return self.standing is _Standing.QUEUED

    def hear(self, action: Dispatch | Enqueue | Refuse | Evict) -> None:
        """Note what the core does; a request that it charges late may have its first token behind it."""
        match action:
            case Dispatch(_, replica, verdict):
                self.standing, self.charged_on = _Standing.CHARGED, replica
                self.judge(verdict, Decision.ADMIT)
                if self.sent_at is not None:
                    self.waited_seconds = asyncio.get_running_loop().time() - self.sent_at
                if self.prefill_seconds is not None:
                    self._tell_first_token_in(self.prefill_seconds)
            case Enqueue(_, _, verdict):
                self.standing, self.charged_on = _Standing.QUEUED, None
                self.judge(verdict, Decision.QUEUE)
            case Refuse(_, verdict) | Evict(_, verdict):
                self.standing, self.charged_on = _Standing.NOTHING, None
                self.judge(verdict, Decision.REFUSE)
            case _:
                assert_never(action)

    def begin(self) -> None:
        """Note the first token, and tell the core of it if the request is charged."""
        loop = asyncio.get_running_loop()
        self.prefill_seconds = 0.0 if self.sent_at is None else loop.time() - self.sent_at
        if self.standing is not _Standing.CHARGED:
            return
        if self.waited_seconds:
            self._tell_first_token_in(self.waited_seconds)
        else:
            self.tell(FirstToken(self.request.key))

    def end(self, event: Event) -> None:
        """Tell the core of the ending of a charged request."""
        if self.waited_seconds and isinstance(event, Finished):
            # Part of the answer came before the charge: it shows neither the pace of its tokens nor what it used.
            event = Finished(event.key)
        self.tell(event)

    def stop(self) -> None:
        """Tell nothing later any more."""
        if self.first_token is not None:
            self.first_token.cancel()
            self.first_token = None

    def _tell_first_token_in(self, seconds: float) -> None:
        """Tell of a first token as long after the charge as it came after the request was sent.

        Told at once it would show an engine whose prompts take no time.
        """
        tell = partial(self.tell, FirstToken(self.request.key))
        self.first_token = asyncio.get_running_loop().call_later(seconds, tell)

    def judge(self, verdict: Verdict, decision: Decision) -> None:
        """Take a verdict: the first decides, a later one may add why the request would not have been served."""
        if self.would is None:
            self.verdict, self.would = verdict, Would(decision, verdict.reason)
        elif verdict.reason is not None:
            self.would.reason = verdict.reason


class Observing:
    """The desk, and the office of its tickets, where no decision of the core is carried out.

    Refused are only requests that nobody could answer, or that nobody has a right to: `upholds` says which.
    """

    def __init__(self, driver: Driver, serving: Callable[[str], Sequence[ReplicaSpec]]) -> None:
        """Take requests to the core of `driver`; `serving` returns the replicas of a pool that are up, by its name."""
        self._driver = driver
        self._serving = serving
        self._passages: dict[int, _Passage] = {}
        self._sent: Counter[str] = Counter()

    def upholds(self, refusal: Verdict) -> bool:
        """Say whether a refusal stands: unless it is for want of room, or for a size that an engine can judge."""
        return refusal.status != HTTPStatus.TOO_MANY_REQUESTS and refusal.reason not in _TOO_LARGE

    async def admit(self, request: Request, on_queued: Callable[[Verdict], None]) -> Ticket | Verdict:
        """Bring a counted request to the core and let it through, whatever is decided; never waits."""
        del on_queued
        passage = _Passage(request, self._driver.ticket_tells)
        self._driver.follow(request.key, passage)
        try:
            self._driver.ticket_tells(Arrived(request))
        except BaseException:
            self._driver.unfollow(request.key)
            raise
        return self._opened(passage)

    def let_pass(self, request: Request, refusal: Verdict) -> Ticket | Verdict:
        """Let a request through that the core was not asked about."""
        passage = _Passage(request, self._driver.ticket_tells)
        passage.judge(refusal, Decision.REFUSE)
        self._driver.follow(request.key, passage)
        return self._opened(passage)

    def ticket_tells(self, event: FirstToken) -> None:
        """Pass the first token on if the core has charged the request, else keep it for when it does."""
        self._passages[event.key].begin()

    def ticket_ends(self, ticket: Ticket, event: Event) -> None:
        """Give back what the core holds."""
        self._close(self._passages.pop(ticket.key), event)

    async def ticket_not_sent(self, ticket: Ticket, on_queued: Callable[[Verdict], None] | None) -> Ticket | Verdict:
        """Send a request elsewhere, once; the core is asked where if it charged the request on the lost replica."""
        del on_queued  # nobody waits
        passage = self._passages.pop(ticket.key)
        lost, passage.sent_at = ticket.replica, None
        if passage.charged_on == lost:
            self._driver.ticket_tells(NotSent(ticket.key))
        if passage.moved:
            self._close(passage, Cancelled(ticket.key, sent=False))
            return lost_again_verdict(ticket.verdict)
        passage.moved = True
        self._leave(passage)
        return self._opened(passage, without=lost)

    def _opened(self, passage: _Passage, without: str | None = None) -> Ticket | Verdict:
        """Return the ticket of a request that is let through now, or the refusal of one that nobody can answer."""
        verdict, would = passage.verdict, passage.would
        if verdict is None or would is None:
            raise RuntimeError("the core left an arrival without an answer")
        stands = verdict.reason is not None and self.upholds(verdict)
        spec = None if stands else self._place(passage, verdict, without)
        if spec is None:
            self._close(passage, Cancelled(passage.request.key, sent=False))
            return verdict if verdict.reason is not None and without is None else lost_again_verdict(verdict)
        passage.replica, passage.sent_at = spec.name, asyncio.get_running_loop().time()
        self._sent[spec.name] += 1
        self._passages[passage.request.key] = passage
        # Everything behind the desk sees an admitted request, so nothing there can count it as refused.
        admitted = replace(
            verdict,
            decision=Decision.ADMIT,
            reason=None,
            replica=spec.name,
            pool=spec.pool,
            profile=spec.profile,
            retry_after_seconds=None,
            detail="",
            advice=(),
            degradations=(),  # what goes by is changed by no rung
            rung=None,
        )
        return Ticket(self, passage.request.key, spec.name, admitted, would)

    def _place(self, passage: _Passage, verdict: Verdict, without: str | None) -> ReplicaSpec | None:
        """Return where the core would send the request; where it would not, the replica with the fewest requests.

        That is what a plain balancer does. The core's choice for a refused one is the replica with the most headroom:
        all of a burst would go there, since none of it is charged.
        """
        pools = [pool for pool in self._driver.policy.pools if pool.serves(passage.request.model)]
        fitting = [pool for pool in pools if verdict.lane in pool.lanes]
        up = [spec for pool in fitting or pools for spec in self._serving(pool.name) if spec.name != without]
        if passage.standing is not _Standing.NOTHING:
            wanted = passage.charged_on or verdict.replica
            up = [spec for spec in up if spec.name == wanted] or up
        return min(up, key=lambda spec: self._sent[spec.name], default=None)

    def _close(self, passage: _Passage, event: Event) -> None:
        """End a request: by its own event if it is charged, as one that left the queue if it waits."""
        key = passage.request.key
        self._leave(passage)
        try:
            if passage.waits:
                self._driver.withdraw(key)
            if passage.holds_charge:
                passage.end(event)
        finally:
            passage.stop()
            self._driver.unfollow(key)

    def _leave(self, passage: _Passage) -> None:
        """Count the request out of its replica."""
        if passage.replica is not None:
            self._sent[passage.replica] -= 1
            if not self._sent[passage.replica]:
                del self._sent[passage.replica]
            passage.replica = None
