"""Where requests are admitted, and what a refusal means there."""

from collections.abc import Callable
from typing import Protocol

from llmshed.admission.request import Request
from llmshed.admission.verdict import Verdict
from llmshed.gateway.driver import Driver
from llmshed.gateway.ticket import Ticket


class Desk(Protocol):
    """Brings requests to the core, and lets in those that its mode lets in."""

    def upholds(self, refusal: Verdict) -> bool:
        """Say whether a request is refused for what a verdict says, rather than let through all the same."""

    async def admit(self, request: Request, on_queued: Callable[[Verdict], None]) -> Ticket | Verdict:
        """Bring a counted request to the core; returns a ticket to run it or the verdict that refuses it.

        `on_queued` hears the verdict that lets it wait, if it has to. Cancelling the wait takes the request out and
        leaves no charge behind.
        """

    def let_pass(self, request: Request, refusal: Verdict) -> Ticket | Verdict:
        """Return a ticket for a request that was refused before the core could be asked, or `refusal` again."""


class Enforcing:
    """The desk where every decision of the core is carried out."""

    def __init__(self, driver: Driver) -> None:
        """Take requests to the core of `driver`."""
        self._driver = driver

    def upholds(self, refusal: Verdict) -> bool:
        """Say that every refusal stands."""
        del refusal
        return True

    async def admit(self, request: Request, on_queued: Callable[[Verdict], None]) -> Ticket | Verdict:
        """Bring a request to the core; see `Driver.admit`."""
        return await self._driver.admit(request, on_queued)

    def let_pass(self, request: Request, refusal: Verdict) -> Ticket | Verdict:
        """Let nobody pass."""
        del request
        return refusal
