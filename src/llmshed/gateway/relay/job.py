"""What the relay is given for one request, and whom it tells how the replicas fare."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from llmshed.admission.request import Request
from llmshed.admission.verdict import Verdict
from llmshed.engines.base import Call, Engine
from llmshed.gateway.contract.answer_headers import NO_TIMINGS, Timings
from llmshed.gateway.relay.timeouts import LaneTimeouts
from llmshed.gateway.ticket import Ticket
from llmshed.observability.metrics import UpstreamErrorKind


class TrafficListener(Protocol):
    """Who wants to know how live traffic fares with each replica."""

    def sent(self, replica: str, request: Request, output_ceiling_tokens: int | None) -> None:
        """Note that a request is on its way to the replica; `ended` is owed for it.

        The ceiling is that on the wire, in tokens of one sequence; None where there is none.
        """

    def heard(self, replica: str, key: int) -> None:
        """Note that data of a stream came; called for every piece of it."""

    def ended(self, replica: str, key: int) -> None:
        """Note that a request runs on the replica no more, whether it was ever on its way there or not."""

    def answered(self, replica: str) -> None:
        """Note that the replica served a request, or refused it for the client's own fault."""

    def counted(self, replica: str, counted_tokens: int, engine_tokens: int) -> None:
        """Note what the gateway and the replica counted of the one prompt of a request that was served."""

    def failed(self, replica: str, kind: UpstreamErrorKind) -> None:
        """Note that the replica failed a request."""


@dataclass(frozen=True, slots=True)
class RelayJob:
    """One admitted request, ready to be sent.

    Args:
        request: the client's request, its body read.
        admitted: what the core knows of it; its model and counts are told with a failure.
        call: what it asks for.
        ticket: its hold on a replica, open.
        engine: adapter of the pool's engine.
        timeouts: silences that its lane permits.
        headers: makes the headers of a served answer from the verdict in force, which a lost replica may change.
        request_id: id told to the client.
        timings: its waits up to now, told with a failure.
    """

    request: web.BaseRequest
    admitted: Request
    call: Call
    ticket: Ticket
    engine: Engine
    timeouts: LaneTimeouts
    headers: Callable[[Verdict], Mapping[str, str]]
    request_id: str
    timings: Timings = NO_TIMINGS
