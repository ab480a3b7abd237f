"""From an admitted ticket to the end of the answer: one exchange with an engine, with exactly one ending."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from llmshed.admission.verdict import Verdict
from llmshed.clock import Clock
from llmshed.engines.base import Call, Engine
from llmshed.gateway.contract import ContractWriter
from llmshed.gateway.outcome import RelayOutcome
from llmshed.gateway.ticket import Ticket
from llmshed.gateway.timeouts import LaneTimeouts
from llmshed.gateway.upstream import UpstreamClient


class TrafficListener(Protocol):
    """Who wants to know how live traffic fares with each replica."""

    def answered(self, replica: str) -> None:
        """Note that the replica began an answer, of whatever status."""

    def unreachable(self, replica: str) -> None:
        """Note that the replica took no byte."""

    def failed(self, replica: str) -> None:
        """Note that the replica broke off or failed by its own fault; slowness is never told."""


@dataclass(frozen=True, slots=True)
class RelayJob:
    """One admitted request, ready to be sent.

    Args:
        request: the client's request, its body read.
        call: what it asks for.
        ticket: its hold on a replica, open.
        engine: adapter of the pool's engine.
        timeouts: silences that its lane permits.
        headers: makes the headers of a served answer from the verdict in force, which a lost replica may change.
        request_id: id told to the client.
    """

    request: web.BaseRequest
    call: Call
    ticket: Ticket
    engine: Engine
    timeouts: LaneTimeouts
    headers: Callable[[Verdict], Mapping[str, str]]
    request_id: str


class Relay:
    """Sends admitted requests to their replicas and their answers to the clients.

    Args:
        upstream: the way to the replicas.
        contract: writes failures in the route's dialect.
        clock: the clock of the outcomes' readings.
        replica_url: returns the base URL of a replica by its name; KeyError when it is gone.
        listener: is told how the replicas fare.
        write_stall_seconds: how long a client may leave written bytes unread before it counts as gone.
    """

    def __init__(
        self,
        upstream: UpstreamClient,
        contract: ContractWriter,
        clock: Clock,
        replica_url: Callable[[str], str],
        listener: TrafficListener,
        write_stall_seconds: float = 60.0,
    ) -> None:
        """Keep the collaborators."""
        self._upstream = upstream
        self._contract = contract
        self._clock = clock
        self._replica_url = replica_url
        self._listener = listener
        self._write_stall_seconds = write_stall_seconds

    async def serve(self, job: RelayJob, outcome: RelayOutcome) -> web.StreamResponse:
        """Run one request to its end and return the response, whose body is already written if it is a stream.

        `outcome` is complete when this returns or raises; the ticket has had its one ending. A client that leaves
        cancels the task (aiohttp's `handler_cancellation`): the upstream socket is then closed before the
        CancelledError goes on.
        """
        raise NotImplementedError
