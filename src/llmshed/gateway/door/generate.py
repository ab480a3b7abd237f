"""The generating routes: from the body to the end of the answer, in the order that a request lives."""

from dataclasses import replace
from http import HTTPStatus

from aiohttp import web

from llmshed.admission.echo import Arrival
from llmshed.admission.request import Request
from llmshed.admission.verdict import Verdict
from llmshed.engines.base import Call, Engine
from llmshed.gateway.contract.answer_headers import answer_headers
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.counting.call_count import CountedCall, ProvedTooLargeError, count_call, most_useful_tokens
from llmshed.gateway.counting.pool import BacklogError
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.door.degrading import Taken, degrade
from llmshed.gateway.door.problems import RefusedError, problem_of
from llmshed.gateway.door.reading import check_open, read_call
from llmshed.gateway.door.repeats import declared_repeats, request_name
from llmshed.gateway.door.unchanged import RefusedSize
from llmshed.gateway.door.uncounted import UncountedError, backlog_verdict
from llmshed.gateway.door.visit import Visit
from llmshed.gateway.door.wishes import Wishes, read_wishes
from llmshed.gateway.relay.job import RelayJob
from llmshed.gateway.relay.timeouts import UNHURRIED
from llmshed.gateway.ticket import Ticket
from llmshed.observability.endings import Ending, Phase


async def serve(gateway: Gateway, visit: Visit) -> web.StreamResponse:
    """Serve one generating request.

    Raises:
        LlmshedError: whatever refuses it; `problems.problem_of` has the answer.
    """
    check_open(gateway, visit)
    pool, call = await read_call(gateway, visit)
    wishes = visit.wishes = read_wishes(visit.request.headers, call)
    taken = await degrade(gateway, visit, pool, call, wishes)
    try:
        asked = await _counted(gateway, visit, taken, wishes)
    except UncountedError as error:
        asked, ticket = error.request, _let_pass(gateway, visit, error)
    else:
        ticket = await _admitted(gateway, visit, asked)
    with ticket:
        job = _job(gateway, visit, asked, taken.call, ticket)
        visit.relaying = True
        response = await visit.snapshot.relay.serve(job, visit.relayed)
    if visit.turns is not None and visit.relayed.ending is Ending.FINISHED:
        gateway.conversations.finished(asked.session, visit.turns, gateway.clock.now())
    return response


async def _counted(gateway: Gateway, visit: Visit, taken: Taken, wishes: Wishes) -> Request:
    """Count the prompts and state the request in the core's terms.

    Raises:
        UncountedError: it was refused for its size before and still would be, the bytes of a prompt alone prove that no
            replica may take it, or too many wait to be counted.
    """
    visit.phase = Phase.COUNTING
    if not taken.changed:
        _refuse_unchanged(gateway, visit, taken, wishes)
    began = gateway.clock.now()
    try:
        try:
            useful = most_useful_tokens(gateway, taken.pool.model)
            counted = await count_call(gateway, taken.pool, taken.call, useful, taken.sizes)
        except ProvedTooLargeError as error:
            least = _request(gateway, visit, taken, wishes, error.proved)
            _refuse_unless_possible(gateway, visit, least, taken)
            # Refused by no limit after all, since a replica with more room came up meanwhile.
            counted = await count_call(gateway, taken.pool, taken.call, sizes=taken.sizes)
    except BacklogError as error:
        uncounted = _request(gateway, visit, taken, wishes, CountedCall((0,) * len(taken.call.prompts)))
        raise UncountedError(uncounted, backlog_verdict(error), problem_of(error)) from error
    finally:
        visit.counted_seconds = gateway.clock.now() - began
    visit.asked = _request(gateway, visit, taken, wishes, counted)
    visit.untruncated_tokens = counted.untruncated_tokens
    return visit.asked


def _refuse_unless_possible(gateway: Gateway, visit: Visit, least: Request, taken: Taken) -> None:
    """Refuse what not even its least possible size lets through; a bound is never told or written down as a count."""
    verdict = gateway.driver.assess(least)
    if verdict.reason is not None:
        if not taken.changed:
            _remember_if_for_good(gateway, visit, verdict, RefusedSize(least.prompt_tokens, is_bound=True))
        raise _beyond_bound(least, verdict)


def _beyond_bound(least: Request, verdict: Verdict) -> UncountedError:
    problem = Problem.from_verdict(verdict, least)
    told = replace(problem, message=f"At least {problem.message}", input_tokens=None)
    return UncountedError(least, replace(verdict, reservation=None), told)


def _refuse_unchanged(gateway: Gateway, visit: Visit, taken: Taken, wishes: Wishes) -> None:
    """Refuse a body that was refused for good before and still would be, by the size that was found then."""
    size = gateway.refused_sizes.find(visit.fingerprint or "", gateway.policy, gateway.clock.now())
    if size is None:
        return
    asked = _request(gateway, visit, taken, wishes, CountedCall(size.prompt_tokens))
    verdict = replace(gateway.driver.assess(asked), arrival=Arrival.UNCHANGED)
    if verdict.status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return
    if size.is_bound:
        raise _beyond_bound(asked, verdict)
    visit.asked, visit.untruncated_tokens = asked, size.untruncated_tokens
    raise UncountedError(asked, verdict, Problem.from_verdict(verdict, asked))


def _remember_if_for_good(gateway: Gateway, visit: Visit, verdict: Verdict, size: RefusedSize) -> None:
    """Keep the size of what no waiting lets in, so that it need not be counted again."""
    for_good = verdict.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and visit.snapshot.desk.upholds(verdict)
    if for_good and visit.fingerprint is not None:
        gateway.refused_sizes.note(visit.fingerprint, size, gateway.policy, gateway.clock.now())


def _request(gateway: Gateway, visit: Visit, taken: Taken, wishes: Wishes, counted: CountedCall) -> Request:
    call = taken.call
    tenant, headers, now = visit.tenant or "", visit.request.headers, gateway.clock.now()
    session = None if wishes.session is None else gateway.hasher.session(tenant, wishes.session)
    turns, fingerprint = visit.turns, visit.fingerprint
    return Request(
        key=gateway.driver.new_key(),
        tenant=tenant,
        model=taken.pool.model,
        prompt_tokens=counted.prompt_tokens,
        copies=call.copies,
        asked_output_tokens=call.asked_output_tokens if taken.output_tokens is None else taken.output_tokens,
        asked_intent=wishes.intent,
        asked_class=wishes.priority_class,
        streamed=call.streamed,
        arrived_at=visit.arrived_at,
        deadline=visit.reading_after(wishes.deadline_seconds),
        first_token_deadline=visit.reading_after(_begins_within_seconds(gateway, wishes)),
        session=session,
        prefix_blocks=counted.prefix_blocks,
        continuing=turns is not None and gateway.conversations.continues(session, turns, now),
        fingerprint=fingerprint and request_name(gateway.hasher, tenant, call.route, headers, fingerprint, wishes),
        declared_repeats=declared_repeats(headers) or 0,
        degradations=taken.actions,
        moved_from=taken.moved_from,
        declined=taken.declined,
        declines_degrading=wishes.declines_degrading,
        drilled=visit.drill is not None,
    )


def _begins_within_seconds(gateway: Gateway, wishes: Wishes) -> float | None:
    """Return within which an answer has to begin for a wait to make sense; None when any wait does.

    Who waits hears nothing, so its client leaves when it bears no more silence. SDKs tell 600 s if nobody chose: what
    no lane lets anybody wait for bounds nothing.
    """
    wished, silence = wishes.first_token_seconds, wishes.silence_seconds
    if silence is None or silence >= max(lane.max_residence_seconds for lane in gateway.policy.lanes.values()):
        return wished
    return silence if wished is None else min(wished, silence)


async def _admitted(gateway: Gateway, visit: Visit, asked: Request) -> Ticket:
    """Bring the request to the core and return its ticket.

    Raises:
        RefusedError: the core refuses it.
    """
    visit.phase = Phase.QUEUE
    began = gateway.clock.now()
    try:
        answer = await visit.snapshot.desk.admit(asked, visit.let_wait)
    finally:
        visit.admitted_at = gateway.clock.now()
        visit.queued_seconds = visit.admitted_at - began
    if isinstance(answer, Verdict):
        visit.verdict = answer
        if not asked.degradations:  # the size is that of the body that was sent
            size = RefusedSize(asked.prompt_tokens, untruncated_tokens=visit.untruncated_tokens)
            _remember_if_for_good(gateway, visit, answer, size)
        raise RefusedError(Problem.from_verdict(answer, asked))
    return _let_in(visit, answer)


def _let_pass(gateway: Gateway, visit: Visit, error: UncountedError) -> Ticket:
    """Return the ticket of a request that is let through uncounted.

    Raises:
        RefusedError: its refusal stands.
    """
    answer = visit.snapshot.desk.let_pass(error.request, error.verdict)
    if isinstance(answer, Verdict):
        visit.verdict = answer
        raise RefusedError(error.problem)
    visit.admitted_at = gateway.clock.now()
    return _let_in(visit, answer)


def _let_in(visit: Visit, ticket: Ticket) -> Ticket:
    visit.verdict = ticket.verdict
    visit.would = ticket.would
    visit.phase = Phase.SENDING
    return ticket


def _job(gateway: Gateway, visit: Visit, asked: Request, call: Call, ticket: Ticket) -> RelayJob:
    def headers(verdict: Verdict) -> dict[str, str]:
        return answer_headers(
            visit.request_id,
            verdict,
            input_tokens=None if visit.asked is None else visit.asked.input_tokens,
            model=asked.model,
            timings=visit.timings(None if call.streamed else gateway.clock.now()),
            streamed=call.streamed,
            untruncated_tokens=visit.untruncated_tokens,
            would=ticket.would,
        )

    lane, admitted = ticket.verdict.lane, asked
    if ticket.would is not None:
        # Without a gateway nobody but its client would have given it up.
        timeouts, admitted = UNHURRIED, replace(asked, deadline=None, first_token_deadline=None)
    elif lane is not None:
        timeouts = visit.snapshot.timeouts[lane]
        begins_by = visit.reading_after(visit.wishes.first_token_seconds)
        if asked.first_token_deadline != begins_by:  # a client's silence bounds the wait; it leaves an engine by itself
            admitted = replace(asked, first_token_deadline=begins_by)
    else:
        raise RuntimeError("a request was admitted without a lane")
    return RelayJob(
        request=visit.request,
        admitted=admitted,
        call=call,
        ticket=ticket,
        engine=_engine(gateway, visit, ticket),
        timeouts=timeouts,
        headers=headers,
        request_id=visit.request_id,
        timings=visit.timings(),
    )


def _engine(gateway: Gateway, visit: Visit, ticket: Ticket) -> Engine:
    """Return the adapter of the replica that was chosen.

    A reload may take that replica away after the choice and before a request that waited learns of it. Then it is the
    one that read the body: the relay finds the replica gone and asks for another.
    """
    try:
        return gateway.fleet.engine_of(ticket.replica)
    except KeyError:
        if visit.engine is None:
            raise
        return visit.engine
