"""Observe mode: the core decides, keeps its queues and its ledger as if it were obeyed, and everybody is let through.

A request is sent at once, whatever the core answers. What the core holds of it lives on beside the exchange:

    answered by    the core holds       until
    Dispatch       its charge           the exchange ends
    Enqueue        its place in line    the core dispatches or evicts it, or the exchange ends first
    Refuse         nothing

So the ledger is that of a gateway which refuses: what it would have refused weighs on the engines and charges nothing.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from http import HTTPStatus
from typing import assert_never

from llmshed.admission.actions import Dispatch, Enqueue, Evict, Refuse
from llmshed.admission.decide import lost_again_verdict
from llmshed.admission.events import Arrived, Cancelled, Event, FirstToken, NotSent
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
        verdict: what the core, or whoever spoke in its place, decided at its arrival.
        would: what would have become of it.
        standing: what the core holds of it.
        charged_on: replica that it is charged on; None while it is not.
        replica: replica that it was sent to.
        prefilled: whether the engine has sent a first token.
        moved: whether a second replica was tried.
        ended: whether its ending is being told.
    """

    request: Request
    verdict: Verdict | None = None
    would: Would | None = None
    standing: _Standing = _Standing.NOTHING
    charged_on: str | None = None
    replica: str | None = None
    prefilled: bool = False
    moved: bool = False
    ended: bool = False

    @property
    def holds_charge(self) -> bool:
        """Say whether the core has charged it."""
        return self.standing is _Standing.CHARGED

    def hear(self, action: Dispatch | Enqueue | Refuse | Evict) -> Event | None:
        """Note what the core does; a request that it charges late may have its first token behind it."""
        match action:
            case Dispatch(key, replica, verdict):
                self.standing, self.charged_on = _Standing.CHARGED, replica
                self.judge(verdict, Decision.ADMIT)
                return FirstToken(key) if self.prefilled and not self.ended else None
            case Enqueue(_, _, verdict):
                self.standing, self.charged_on = _Standing.QUEUED, None
                self.judge(verdict, Decision.QUEUE)
            case Refuse(_, verdict) | Evict(_, verdict):
                self.standing, self.charged_on = _Standing.NOTHING, None
                self.judge(verdict, Decision.REFUSE)
            case _:
                assert_never(action)
        return None

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

    async def admit(self, request: Request) -> Ticket | Verdict:
        """Bring a counted request to the core and let it through, whatever is decided; never waits."""
        passage = _Passage(request)
        self._driver.follow(request.key, passage)
        try:
            self._driver.ticket_tells(Arrived(request))
        except BaseException:
            self._driver.unfollow(request.key)
            raise
        return self._opened(passage)

    def let_pass(self, request: Request, refusal: Verdict) -> Ticket | Verdict:
        """Let a request through that the core was not asked about."""
        passage = _Passage(request)
        passage.judge(refusal, Decision.REFUSE)
        self._driver.follow(request.key, passage)
        return self._opened(passage)

    def ticket_tells(self, event: FirstToken) -> None:
        """Pass the first token on if the core has charged the request, else keep it for when it does."""
        passage = self._passages[event.key]
        passage.prefilled = True
        if passage.standing is _Standing.CHARGED:
            self._driver.ticket_tells(event)

    def ticket_ends(self, ticket: Ticket, event: Event) -> None:
        """Give back what the core holds."""
        self._close(self._passages.pop(ticket.key), event)

    async def ticket_not_sent(self, ticket: Ticket) -> Ticket | Verdict:
        """Send a request elsewhere, once; the core is asked where if it charged the request on the lost replica."""
        passage = self._passages.pop(ticket.key)
        lost = ticket.replica
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
        passage.replica = spec.name
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
        passage.ended = True
        self._leave(passage)
        try:
            match passage.standing:
                case _Standing.CHARGED:
                    self._driver.ticket_tells(event)
                case _Standing.QUEUED:
                    self._driver.ticket_tells(Cancelled(key, sent=False))
                case _Standing.NOTHING:
                    pass
                case _:
                    assert_never(passage.standing)
        finally:
            self._driver.unfollow(key)

    def _leave(self, passage: _Passage) -> None:
        """Count the request out of its replica."""
        if passage.replica is not None:
            self._sent[passage.replica] -= 1
            if not self._sent[passage.replica]:
                del self._sent[passage.replica]
            passage.replica = None
