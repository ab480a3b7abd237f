"""The only caller of the core: it reads the clock, performs the actions and tells what happened as later events."""

import asyncio
import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, assert_never

from llmshed.admission.actions import Action, Dispatch, Enqueue, Evict, Refuse, Released, RungChanged
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import (
    Arrived,
    BudgetChanged,
    Cancelled,
    Draining,
    Event,
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
from llmshed.admission.request import Request
from llmshed.admission.state import ControllerState
from llmshed.admission.verdict import Verdict
from llmshed.clock import Clock
from llmshed.gateway.ticket import Ticket
from llmshed.ladder.model import Rung
from llmshed.ladder.standing import Step

_log = logging.getLogger(__name__)

Answer = Dispatch | Refuse | Evict
Fact = (
    ReplicaUp
    | ReplicaDown
    | ReplicaRemoved
    | ReplicaRead
    | BudgetChanged
    | PolicyChanged
    | RungHeld
    | RungReleased
    | Draining
)
"""What belongs to no single request."""


class Follower(Protocol):
    """Who hears what the core does with one request that runs meanwhile."""

    @property
    def holds_charge(self) -> bool:
        """Say whether the request is charged, as far as the follower has heard."""

    @property
    def waits(self) -> bool:
        """Say whether it stands in the core's queue, likewise."""

    def hear(self, action: Answer | Enqueue) -> None:
        """Take note of an action; the core may not be told anything meanwhile."""


@dataclass(slots=True)
class _Wait:
    """A request whose answer is outstanding.

    The answer is kept beside the future because a cancelled task learns of its cancellation later than the core may
    answer it: whoever ends the wait must see which of the two came first. There is a future only where the core did not
    answer at once.
    """

    on_queued: Callable[[Verdict], None] | None = None
    answer: Answer | None = None
    answered: asyncio.Future[None] | None = None


class Driver:
    """Runs one controller on the event loop.

    Everything happens on the loop's thread; an event is handled and its actions are performed in one go, so no two
    events interleave.
    """

    def __init__(self, controller: AdmissionController, clock: Clock) -> None:
        """Drive `controller` by `clock`, which must be monotonic."""
        self._controller = controller
        self._clock = clock
        self._keys = itertools.count(1)
        self._waiting: dict[int, _Wait] = {}
        self._open: dict[int, Ticket] = {}
        self._charged: set[int] = set()
        self._followers: dict[int, Follower] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: float | None = None
        self.on_step: Callable[[Step], None] = _unheard
        """Hears each change of the rung in force on a pool; the core may not be told anything meanwhile."""

    @property
    def policy(self) -> AdmissionPolicy:
        """Return the policy that new requests come under."""
        return self._controller.policy

    @property
    def draining(self) -> bool:
        """Say whether the core was told that the gateway shuts down."""
        return self._controller.draining

    @property
    def live(self) -> int:
        """Return how many requests clients still wait for: those that wait here and those that run."""
        return len(self._waiting) + len(self._open) + len(self._followers)

    @property
    def charged(self) -> int:
        """Return how many requests hold tokens, those of gone clients that are still being released included."""
        return len(self._charged)

    @property
    def uncharged(self) -> int:
        """Return how many requests run without a charge, because they are let through whatever the core decides."""
        return sum(not follower.holds_charge for follower in self._followers.values())

    def new_key(self) -> int:
        """Return a key that no other request of this gateway has."""
        return next(self._keys)

    async def admit(self, request: Request, on_queued: Callable[[Verdict], None] | None = None) -> Ticket | Verdict:
        """Bring a counted request to the core; returns a ticket to run it or the verdict that refuses it.

        Waits while the request is queued; `on_queued` hears the verdict that lets it wait. Cancelling the wait takes
        the request out and leaves no charge behind.
        """
        return await self._ask(request.key, Arrived(request), on_queued)

    def gate(self, tenant: str) -> Verdict | None:
        """Return the refusal that needs no body to be read, or None."""
        return self._controller.gate(tenant, self._clock.now())

    def assess(self, request: Request) -> Verdict:
        """Return the verdict that the request would get now, changing nothing."""
        return self._controller.assess(request, self._clock.now())

    def state(self) -> ControllerState:
        """Return a snapshot of every ledger."""
        return self._controller.state(self._clock.now())

    def rungs_in_force(self, pool: str) -> tuple[Rung, ...]:
        """Return the rungs in force on a pool, first to last; none where it has no ladder, or is not known."""
        return self._controller.rungs_in_force(pool)

    def tell(self, event: Fact) -> None:
        """Tell the core a fact that belongs to no single request.

        Raises:
            KeyError: the replica never came up, or the pool on which a rung is held has no ladder.
            ValueError: the pool's ladder has no such rung.
        """
        self._handle(event)

    def violations(self) -> tuple[str, ...]:
        """Return the invariants that do not hold, the core's and the driver's own; empty when all do."""
        uncharged = [key for key in self._open if key not in self._charged]
        own = [f"request {key} runs without a charge" for key in uncharged]
        for key, follower in self._followers.items():
            if follower.holds_charge != (key in self._charged):
                own.append(f"request {key} is let through and does not know whether it is charged")
        return self._controller.check() + tuple(own)

    def follow(self, key: int, follower: Follower) -> None:
        """Let `follower` hear what the core does with a request until `unfollow`; events are told by `ticket_tells`.

        Raises:
            ValueError: the key is in use.
        """
        if key in self._followers or key in self._waiting or key in self._open:
            raise ValueError(f"request {key} is already live")
        self._followers[key] = follower

    def withdraw(self, key: int) -> None:
        """Take a followed request that waits out of the core's queue, unless its wait is over by now.

        The core acts on its timers first, late as they may be, since its follower tells what would have become of it.
        """
        self._handle(Tick())
        if self._followers[key].waits:
            self._handle(Cancelled(key, sent=False))

    def unfollow(self, key: int) -> None:
        """Forget a request that has ended."""
        del self._followers[key]

    def close(self) -> None:
        """Stop the timer; the driver takes no further events."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def ticket_tells(self, event: Event) -> None:
        """Pass on a fact of an open ticket, or of a request that is followed."""
        self._handle(event)

    def ticket_ends(self, ticket: Ticket, event: Event) -> None:
        """Pass on the ending of a ticket."""
        del self._open[ticket.key]
        self._handle(event)

    async def ticket_not_sent(self, ticket: Ticket, on_queued: Callable[[Verdict], None] | None) -> Ticket | Verdict:
        """Ask the core for another replica, and wait for it if need be."""
        del self._open[ticket.key]
        return await self._ask(ticket.key, NotSent(ticket.key), on_queued)

    async def _ask(
        self, key: int, event: Arrived | NotSent, on_queued: Callable[[Verdict], None] | None
    ) -> Ticket | Verdict:
        wait = self._waiting[key] = _Wait(on_queued)
        try:
            self._handle(event)
        except BaseException:
            del self._waiting[key]
            raise
        try:
            if wait.answer is None:
                wait.answered = asyncio.get_running_loop().create_future()
                await wait.answered
        except BaseException:
            del self._waiting[key]
            if wait.answer is None or isinstance(wait.answer, Dispatch):
                self._handle(Cancelled(key, sent=False))
            raise
        match wait.answer:
            case Dispatch(_, replica, verdict):
                ticket = self._open[key] = Ticket(self, key, replica, verdict)
                del self._waiting[key]
                return ticket
            case Refuse(_, verdict) | Evict(_, verdict):
                del self._waiting[key]
                return verdict
            case None:
                raise RuntimeError("a wait ended without an answer")
            case _:
                assert_never(wait.answer)

    def _handle(self, event: Event) -> None:
        for action in self._controller.handle(event, self._clock.now()):
            self._perform(action)
        self._arm()

    def _perform(self, action: Action) -> None:
        if isinstance(action, RungChanged):
            self._tell_step(action.step)
            return
        match action:
            case Dispatch(key):
                self._charged.add(key)
            case Refuse(key) | Evict(key) | Released(key):
                self._charged.discard(key)
            case Enqueue(key):
                pass
            case _:
                assert_never(action)
        if isinstance(action, Released):
            return
        if (follower := self._followers.get(key)) is not None:
            follower.hear(action)
        elif not isinstance(action, Enqueue):
            self._answer(key, action)
        elif (wait := self._waiting.get(key)) is not None and wait.on_queued is not None:
            wait.on_queued(action.verdict)

    def _tell_step(self, step: Step) -> None:
        try:
            self.on_step(step)
        except Exception:  # noqa: BLE001 - the actions behind it answer clients, who would wait for ever
            _log.exception("step_unheard", extra={"pool": step.pool, "rung": step.after})

    def _answer(self, key: int, answer: Answer) -> None:
        wait = self._waiting.get(key)
        if wait is None:
            # The core was told that this request is gone; charging it again is a fault of the core. Give it back.
            _log.error("unexpected_answer", extra={"key": key})
            if isinstance(answer, Dispatch):
                asyncio.get_running_loop().call_soon(self._handle, Cancelled(key, sent=False))
            return
        wait.answer = answer
        if wait.answered is not None and not wait.answered.done():
            wait.answered.set_result(None)

    def _arm(self) -> None:
        wakeup = self._controller.next_wakeup()
        if wakeup == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = wakeup
        if wakeup is not None:
            delay = max(0.0, wakeup - self._clock.now())
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        # uvloop rounds to milliseconds, so the timer may fire a little early: the core then names the time again.
        self._timer = None
        self._timer_at = None
        self._handle(Tick())


def _unheard(step: Step) -> None:
    """Hear nothing."""
