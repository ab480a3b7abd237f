"""From an admitted ticket to the end of the answer: at most two replicas, exactly one ending."""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable
from dataclasses import replace

from aiohttp import web

from llmshed.admission.decide import draining_verdict
from llmshed.admission.reasons import Reason
from llmshed.admission.verdict import Verdict
from llmshed.clock import Clock
from llmshed.gateway.contract.answer_headers import would_headers
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.contract.refusals import Answer, ContractWriter
from llmshed.gateway.relay.failures import ExchangeError, given_up, past_deadline
from llmshed.gateway.relay.headers import engine_headers
from llmshed.gateway.relay.job import RelayJob, TrafficListener
from llmshed.gateway.relay.outcome import RelayOutcome
from llmshed.gateway.relay.outlet import ClientGoneError
from llmshed.gateway.relay.stream import StreamRelay
from llmshed.gateway.relay.term import Term
from llmshed.gateway.relay.upstream import NotSentError, UpstreamAnswer, UpstreamClient
from llmshed.gateway.relay.whole import relay_whole
from llmshed.gateway.ticket import Ticket
from llmshed.observability.endings import EndedBy, Ending, Phase
from llmshed.observability.metrics import UpstreamErrorKind


class Relay:
    """Sends admitted requests to their replicas and their answers to the clients.

    Args:
        upstream: the way to the replicas.
        contract: writes failures in the route's dialect.
        clock: the clock of the outcomes' readings.
        replica_url: returns the base URL of a replica by its name; KeyError when it is gone.
        listener: is told how the replicas fare.
    """

    def __init__(
        self,
        upstream: UpstreamClient,
        contract: ContractWriter,
        clock: Clock,
        replica_url: Callable[[str], str],
        listener: TrafficListener,
    ) -> None:
        """Keep the collaborators."""
        self._upstream = upstream
        self._contract = contract
        self._clock = clock
        self._replica_url = replica_url
        self._listener = listener
        self._running: set[Term] = set()

    def break_off(self) -> None:
        """End every exchange that runs with an error, since the gateway shuts down."""
        for term in self._running:
            term.break_off()

    async def serve(self, job: RelayJob, outcome: RelayOutcome) -> web.StreamResponse:
        """Run one request to its end and return the response, whose body is already written if it is a stream.

        `outcome` is complete when this returns or raises; the ticket has had its one ending. A client that leaves
        cancels the task (aiohttp's `handler_cancellation`): the upstream socket is then closed before the
        CancelledError goes on.
        """
        try:
            successor: Ticket | Verdict = job.ticket
            while isinstance(successor, Ticket):
                outcome.verdict = successor.verdict
                with successor as ticket:
                    try:
                        try:
                            return await self._exchange(job, ticket, outcome)
                        finally:
                            self._listener.ended(ticket.replica, ticket.key)
                    except NotSentError:
                        successor = await self._elsewhere(job, ticket, outcome)
            return self._refuse(job, successor, outcome)
        except asyncio.CancelledError:
            if outcome.ending is None:
                _note_ending(outcome, Ending.CANCELLED, EndedBy.CLIENT)
            raise
        finally:
            outcome.ended_at = self._clock.now()

    async def _exchange(self, job: RelayJob, ticket: Ticket, outcome: RelayOutcome) -> web.StreamResponse:
        """Try one replica and end the ticket, unless the replica read no byte."""
        streamed = job.call.streamed
        heard = functools.partial(self._listener.heard, ticket.replica, ticket.key)
        stream = StreamRelay(job, ticket, outcome, self._clock, heard) if streamed else None
        try:
            response = await self._within_term(job, ticket, stream, outcome)
        except ExchangeError as error:
            ticket.failed(engine_holds=error.engine_holds)
            self._note_failure(error, ticket, outcome)
            return await self._tell_failure(error.problem, job, stream, outcome)
        except ClientGoneError:
            ticket.cancelled(sent=True)
            _note_ending(outcome, Ending.CANCELLED, EndedBy.CLIENT)
            return web.Response() if stream is None or stream.response is None else stream.response
        except asyncio.CancelledError:
            ticket.cancelled(sent=outcome.sent_at is not None)
            raise
        ticket.finished(outcome.output_tokens)
        self._listener.answered(ticket.replica)
        self._compare_counts(job, ticket.replica, outcome)
        outcome.status = response.status
        outcome.phase = Phase.COMPLETE
        _note_ending(outcome, Ending.FINISHED, EndedBy.NOBODY)
        return await _with_end(response)

    async def _within_term(
        self, job: RelayJob, ticket: Ticket, stream: StreamRelay | None, outcome: RelayOutcome
    ) -> web.StreamResponse:
        """Run the exchange until the request's deadlines; a stream whose last event was passed on has kept them."""
        send = self._sender(job, ticket, outcome)
        term = Term(job.admitted, self._clock.now())
        self._running.add(term)
        try:
            async with term.timeout:
                if stream is None:
                    return await relay_whole(send, job, ticket.verdict, outcome)
                return await stream.run(send, term.answer_began)
        except TimeoutError:
            if stream is not None and stream.is_complete and stream.response is not None:
                return stream.response
            if term.broken_off:
                raise given_up(job, ticket.verdict) from None
            raise past_deadline(term, job, ticket.verdict, sent=outcome.sent_at is not None) from None
        finally:
            self._running.discard(term)

    def _compare_counts(self, job: RelayJob, replica: str, outcome: RelayOutcome) -> None:
        """Tell both counts of a prompt that both counted, alone and once.

        Images are only bounded here, and what was let through uncounted is 0. With tools and the choice of them left to
        the model an engine may tell of a second run, which has none.
        """
        prompts, body = job.admitted.prompt_tokens, job.call.body
        alone = len(prompts) == 1 and job.admitted.copies == 1 and not job.call.images
        once = not body.get("tools") or body.get("tool_choice", "auto") != "auto"
        if outcome.engine_input_tokens is not None and alone and once and prompts[0]:
            self._listener.counted(replica, prompts[0], outcome.engine_input_tokens)

    def _sender(self, job: RelayJob, ticket: Ticket, outcome: RelayOutcome) -> Callable[[], Awaitable[UpstreamAnswer]]:
        def on_connected() -> None:
            outcome.sent_at = self._clock.now()
            outcome.phase = Phase.PREFILL
            written = ticket.wire_ceiling_tokens
            ceiling_tokens = job.call.asked_output_tokens if written is None else written
            self._listener.sent(ticket.replica, job.admitted, ceiling_tokens)

        async def send() -> UpstreamAnswer:
            try:
                base_url = self._replica_url(ticket.replica)
            except KeyError:
                raise NotSentError(f"replica {ticket.replica} is no longer configured") from None
            body = job.engine.write_body(job.call, ticket.wire_ceiling_tokens)
            headers = engine_headers(job.call, job.request.headers)
            return await self._upstream.send(base_url + job.call.route.value, body, headers, on_connected)

        return send

    async def _elsewhere(self, job: RelayJob, ticket: Ticket, outcome: RelayOutcome) -> Ticket | Verdict:
        """Have another replica chosen, for which the request may have to wait; the core minds its deadlines then."""
        self._listener.failed(ticket.replica, UpstreamErrorKind.NOT_SENT)
        outcome.sent_at = None
        outcome.phase = Phase.SENDING
        outcome.redispatched = True

        def let_wait(verdict: Verdict) -> None:
            outcome.verdict = verdict
            outcome.phase = Phase.QUEUE

        term = Term(replace(job.admitted, deadline=None, first_token_deadline=None), self._clock.now())
        self._running.add(term)
        try:
            async with term.timeout:
                successor = await ticket.not_sent(let_wait)
        except TimeoutError:
            told = ticket.verdict
            return replace(draining_verdict(), lane=told.lane, intent=told.intent, priority_class=told.priority_class)
        finally:
            self._running.discard(term)
        if isinstance(successor, Ticket):
            outcome.phase = Phase.SENDING
        return successor

    def _refuse(self, job: RelayJob, verdict: Verdict, outcome: RelayOutcome) -> web.Response:
        """Answer a request whose replica was lost and that no other one takes."""
        outcome.verdict = verdict
        outcome.reason = verdict.reason
        if outcome.phase is Phase.QUEUE:
            late = verdict.reason is Reason.DEADLINE_INFEASIBLE
            _note_ending(outcome, Ending.EVICTED, EndedBy.DEADLINE if late else EndedBy.GATEWAY)
        else:
            _note_ending(outcome, Ending.REFUSED, EndedBy.UPSTREAM)
        return self._problem_response(Problem.from_verdict(verdict, job.admitted), job, outcome)

    def _note_failure(self, error: ExchangeError, ticket: Ticket, outcome: RelayOutcome) -> None:
        outcome.reason = error.problem.reason
        _note_ending(outcome, Ending.FAILED, error.ended_by)
        if error.kind is not None:
            self._listener.failed(ticket.replica, error.kind)
        elif error.ended_by is EndedBy.UPSTREAM:
            self._listener.answered(ticket.replica)

    async def _tell_failure(
        self, problem: Problem, job: RelayJob, stream: StreamRelay | None, outcome: RelayOutcome
    ) -> web.StreamResponse:
        """Tell the client: by a whole answer, or by one event once the 200 is sent, with no terminator after it."""
        if stream is None or stream.response is None:
            return self._problem_response(problem, job, outcome)
        if not stream.failure_was_relayed:
            event = self._contract.error_event(problem, job.call.route.dialect, job.request_id)
            try:
                await stream.response.write(stream.own_event(event))
            except ConnectionError:
                return stream.response
        return await _with_end(stream.response)

    def _problem_response(self, problem: Problem, job: RelayJob, outcome: RelayOutcome) -> web.Response:
        accept = job.request.headers.get("Accept")
        answer: Answer = self._contract.refusal(problem, job.call.route.dialect, job.request_id, accept, job.timings)
        outcome.status = answer.status
        outcome.retry_after_seconds = answer.retry_after_seconds
        would = {} if job.ticket.would is None else would_headers(job.ticket.would)
        return web.Response(status=answer.status, headers=answer.headers | would, body=answer.body)


async def _with_end(response: web.StreamResponse) -> web.StreamResponse:
    """Write the end of a stream's body; a whole response is written by the server."""
    if response.prepared:
        with contextlib.suppress(ConnectionError):  # a client that left after the last event is owed nothing
            await response.write_eof()
    return response


def _note_ending(outcome: RelayOutcome, ending: Ending, ended_by: EndedBy) -> None:
    outcome.ending = ending
    outcome.ended_by = ended_by
