"""The relay of a stream of events: bytes go straight on, a reader follows from the side."""

import asyncio
import re
from collections.abc import Awaitable, Callable

from aiohttp import web

from llmshed.clock import Clock
from llmshed.engines.base import EngineFailure
from llmshed.gateway.contract.problem import PassedTime, Timeout
from llmshed.gateway.relay.failures import ExchangeError, broken_off, fell_silent, told_by_engine
from llmshed.gateway.relay.headers import client_headers
from llmshed.gateway.relay.job import RelayJob
from llmshed.gateway.relay.outcome import RelayOutcome
from llmshed.gateway.relay.outlet import ClientGoneError, Outlet
from llmshed.gateway.relay.timeouts import Watch
from llmshed.gateway.relay.upstream import MAX_ANSWER_BYTES, LostError, UpstreamAnswer, read_whole
from llmshed.gateway.ticket import Ticket
from llmshed.observability.endings import Phase
from llmshed.observability.metrics import UpstreamErrorKind

LINGER_SECONDS = 1.0
"""How long a replica may take to close a stream whose last event has come; its connection is not reused after that."""

_LEADING_COMMENTS = re.compile(rb"(?:(?::[^\r\n]*)?(?:\r\n|\n|\r(?!\Z)))*")
_TERMINATOR = re.compile(rb"(?:\A|(?<=[\r\n]))data: ?\[DONE\]")


class StreamRelay:
    """One streamed exchange.

    The client's status line is held back until the engine's first data event, because TGI sends its 200 before it
    knows whether it can serve: until then every failure is still a clean HTTP error. `response` is None until then;
    `failure_was_relayed` says that the engine's own error event has reached the client.
    """

    def __init__(
        self,
        job: RelayJob,
        ticket: Ticket,
        outcome: RelayOutcome,
        clock: Clock,
        heard: Callable[[], None],
    ) -> None:
        """Prepare to relay the answer to `job`, whose hold is `ticket`; `heard` is called when data has come."""
        self._job = job
        self._ticket = ticket
        self._outcome = outcome
        self._clock = clock
        self._heard = heard
        self._idle_seconds = job.timeouts.idle_seconds
        self._reader = job.engine.stream_reader(job.call)
        self._facts = self._reader.facts
        self._outlet: Outlet | None = None
        self._loop = asyncio.get_running_loop()
        self._silent_until = float("inf")
        self._data_events = 0
        self.response: web.StreamResponse | None = None
        self.failure_was_relayed = False

    @property
    def is_complete(self) -> bool:
        """Say whether the engine's last event has come; every chunk is passed on before the next is read."""
        return self._facts.complete

    async def run(
        self, send: Callable[[], Awaitable[UpstreamAnswer]], on_beginning: Callable[[], None]
    ) -> web.StreamResponse:
        """Relay the stream up to its end, which is left to the caller to write.

        `on_beginning` is called when the first data event has come.

        Raises:
            NotSentError: the replica read no byte.
            ExchangeError: the engine told an error, was lost or fell silent.
            ClientGoneError: the client cannot be written to.
        """
        answer: UpstreamAnswer | None = None
        try:
            async with asyncio.timeout(self._job.timeouts.first_byte_seconds):
                answer = await send()
                held = await self._hold(answer)
            on_beginning()
            response = await self._commit(answer)
            await self._relay(answer, Outlet(self._job.request, response), held)
            self._outcome.engine_input_tokens = self._facts.input_tokens
        except TimeoutError:
            timeout = Timeout(PassedTime.FIRST_BYTE, self._job.timeouts.first_byte_seconds)
            raise self._silent(timeout, UpstreamErrorKind.FIRST_BYTE_TIMEOUT) from None
        except LostError as error:
            raise self._broken_off(str(error), UpstreamErrorKind.LOST) from error
        finally:
            if answer is not None:
                answer.close()
        return response

    def own_event(self, event: bytes) -> bytes:
        """Return an event of the gateway so that it stands alone, though the engine's last may have been cut short."""
        return event if self._outlet is None or self._outlet.between_events else b"\n\n" + event

    async def _hold(self, answer: UpstreamAnswer) -> bytes:
        """Return the bytes up to and with the first data event, less the comments before it."""
        if answer.status != 200:
            failure = self._job.engine.read_failure(answer.status, await read_whole(answer))
            raise self._told(failure, UpstreamErrorKind.STATUS)
        facts = self._facts
        held = bytearray()
        while not facts.data_events and facts.failure is None:
            chunk = await answer.read()
            if chunk:
                self._reader.feed(chunk)
                held += chunk
                if (
                    b"\n" in chunk or b"\r" in chunk
                ):  # else no comment ends with it, and looking again costs all of `held`
                    _drop_leading_comments(held)
            else:
                self._reader.end()
                if facts.failure is None:
                    raise self._broken_off("The engine ended the stream before its first event.")
            if len(held) > MAX_ANSWER_BYTES:
                raise self._broken_off("The engine's first event is too long.")
        if facts.failure is not None:
            raise self._told(facts.failure)
        return bytes(held)

    async def _commit(self, answer: UpstreamAnswer) -> web.StreamResponse:
        """Send the client status and headers."""
        self._note_progress()
        own = {"Cache-Control": "no-cache", **self._job.headers(self._ticket.verdict)}
        response = self.response = web.StreamResponse(headers=client_headers(answer.headers, own))
        self._outcome.status = response.status
        try:
            await response.prepare(self._job.request)
        except ConnectionError as error:
            raise ClientGoneError from error
        return response

    async def _relay(self, answer: UpstreamAnswer, outlet: Outlet, held: bytes) -> None:
        """Pass the stream on, `held` first, until the engine's end.

        While the client keeps up, each chunk is passed on where it arrives and this waits for the end; when it does
        not, the engine waits with it.
        """
        self._outlet = outlet
        watch = Watch()

        def pass_on(chunk: bytes) -> bool:
            self._reader.feed(chunk)
            self._note_progress()
            if self._facts.failure is not None:
                self._pass_on_failure(outlet, chunk)
            outlet.write(chunk)
            watch.expect_by(self._silent_until, answer.close)
            return not outlet.full

        try:
            outlet.write(held)
            more = True
            while more:
                if outlet.full:
                    watch.stop()  # how long that may take is minded by the client's connection
                    await outlet.drained()
                watch.expect_by(self._silent_until, answer.close)
                more = await answer.deliver(pass_on)
            self._reader.end()
            if not self._facts.complete:
                raise self._broken_off("The engine ended the stream before its last event.")
        except LostError:
            # Only the close was missing when everything had been said.
            if self._facts.complete:
                return
            if watch.expired:
                timeout = Timeout(PassedTime.IDLE, self._idle_seconds)
                raise self._silent(timeout, UpstreamErrorKind.IDLE_TIMEOUT) from None
            raise
        finally:
            watch.stop()

    def _pass_on_failure(self, outlet: Outlet, chunk: bytes) -> None:
        """Write the engine's own error event, less a terminator that would make the stream look complete.

        Raises:
            ExchangeError: always; the failure is the end of the exchange.
        """
        failure = self._facts.failure
        if failure is None:
            return
        self.failure_was_relayed = True
        terminator = _TERMINATOR.search(chunk)
        outlet.write(chunk if terminator is None else chunk[: terminator.start()])
        raise self._told(failure)

    def _note_progress(self) -> None:
        facts = self._facts
        outcome = self._outcome
        if outcome.first_token_at is None and facts.output_tokens:
            outcome.first_token_at = self._clock.now()
            outcome.phase = Phase.DECODE
            self._ticket.first_token()
        outcome.output_tokens = facts.output_tokens
        outcome.finish_reason = facts.finish_reason
        if facts.complete:
            self._silent_until = min(self._silent_until, self._loop.time() + LINGER_SECONDS)
        elif facts.data_events > self._data_events:
            self._data_events = facts.data_events
            self._silent_until = self._loop.time() + self._idle_seconds
            self._heard()

    def _told(self, failure: EngineFailure, kind: UpstreamErrorKind = UpstreamErrorKind.STREAM) -> ExchangeError:
        return told_by_engine(failure, kind, self._job, self._ticket.verdict)

    def _broken_off(self, message: str, kind: UpstreamErrorKind = UpstreamErrorKind.STREAM) -> ExchangeError:
        return broken_off(message, kind, self._job, self._ticket.verdict)

    def _silent(self, timeout: Timeout, kind: UpstreamErrorKind) -> ExchangeError:
        return fell_silent(timeout, kind, self._job, self._ticket.verdict)


def _drop_leading_comments(held: bytearray) -> None:
    """Drop whole keep-alive comments and blank lines before the first event; they would mean nothing that late."""
    comments = _LEADING_COMMENTS.match(held)
    if comments is not None:
        del held[: comments.end()]
