"""One request's hold on its replica: it owns the charge, if there is one, and gives it back by exactly one ending."""

from collections.abc import Callable
from enum import Enum
from types import TracebackType
from typing import Protocol, Self

from llmshed.admission.events import Cancelled, Event, Failed, Finished, FirstToken
from llmshed.admission.verdict import Verdict
from llmshed.gateway.would import Would


class TicketOffice(Protocol):
    """Where tickets report to: the driver, or the desk that only observes."""

    def ticket_tells(self, event: FirstToken) -> None:
        """Pass on a fact of a ticket that stays open."""

    def ticket_ends(self, ticket: "Ticket", event: Event) -> None:
        """Pass on the ending of a ticket."""

    async def ticket_not_sent(
        self, ticket: "Ticket", on_queued: Callable[[Verdict], None] | None
    ) -> "Ticket | Verdict":
        """Ask for another replica, or learn that there is none; `on_queued` hears that the request has to wait."""


class TicketState(Enum):
    """Whether the charge is still this ticket's to give back."""

    OPEN = "open"
    REPLACED = "replaced"
    ENDED = "ended"


class Ticket:
    """The right to send one request to one replica, from its dispatch to its ending.

    Used as a context manager, so that no path leaves it open: one that is dropped without an ending is ended as
    `cancelled(sent=True)`, which holds the tokens back for the grace. A second ending is a mistake of the caller and
    raises RuntimeError; the ledger is never told twice.

    Args:
        office: whoever made the ticket.
        key: the request's key in the core.
        replica: name of the replica that was chosen.
        verdict: the decision that admitted the request, with its ceiling and reservation.
        would: what would have become of a request that is let through whatever was decided; None for one that was
            admitted in earnest.
    """

    __slots__ = ("_office", "_state", "key", "replica", "verdict", "would")

    def __init__(
        self, office: TicketOffice, key: int, replica: str, verdict: Verdict, would: Would | None = None
    ) -> None:
        """Start open."""
        self._office = office
        self._state = TicketState.OPEN
        self.key = key
        self.replica = replica
        self.verdict = verdict
        self.would = would

    @property
    def wire_ceiling_tokens(self) -> int | None:
        """Return the output ceiling to be written on the wire; None leaves the client's own, or none, as it is."""
        return (self.verdict.output_ceiling_tokens or 0) if self.would is None else None

    @property
    def is_open(self) -> bool:
        """Say whether an ending is still owed."""
        return self._state is TicketState.OPEN

    def first_token(self) -> None:
        """Tell that the engine sent its first token, so that prefill is over."""
        self._insist_on_open()
        self._office.ticket_tells(FirstToken(self.key))

    def finished(self, output_tokens: int | None = None) -> None:
        """End: the engine ended the answer by itself."""
        self._end(Finished(self.key, output_tokens))

    def failed(self, *, engine_holds: bool) -> None:
        """End: the engine failed or fell silent; `engine_holds` when it may still be generating."""
        self._end(Failed(self.key, engine_holds))

    def cancelled(self, *, sent: bool) -> None:
        """End: the client left; `sent` is False when the engine never got the request."""
        self._end(Cancelled(self.key, sent))

    async def not_sent(self, on_queued: Callable[[Verdict], None] | None = None) -> "Ticket | Verdict":
        """Give this replica up, which read no byte of the request.

        Returns the ticket for another replica, or the verdict of the refusal when there is none. This ticket is spent
        in both cases. The other replica may have no room yet: `on_queued` then hears the verdict by which the request
        waits for it. Cancelling the wait ends the request as cancelled and not sent.
        """
        self._insist_on_open()
        self._state = TicketState.REPLACED
        return await self._office.ticket_not_sent(self, on_queued)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.is_open:
            self.cancelled(sent=True)

    def _end(self, event: Event) -> None:
        self._insist_on_open()
        self._state = TicketState.ENDED
        self._office.ticket_ends(self, event)

    def _insist_on_open(self) -> None:
        if self._state is not TicketState.OPEN:
            raise RuntimeError(f"ticket of request {self.key} is {self._state.value}: it can have only one ending")
