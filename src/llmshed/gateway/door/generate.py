"""The generating routes: from the body to the end of the answer, in the order that a request lives."""

from dataclasses import replace

from aiohttp import web

from llmshed.admission.policy import PoolPolicy
from llmshed.admission.request import Request
from llmshed.admission.verdict import Verdict
from llmshed.engines.base import Call
from llmshed.gateway.contract.answer_headers import answer_headers
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.counting.call_count import CountedCall, ProvedTooLargeError, count_call, most_useful_tokens
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.door.problems import RefusedError
from llmshed.gateway.door.reading import check_open, read_call
from llmshed.gateway.door.visit import Visit
from llmshed.gateway.door.wishes import Wishes, read_wishes
from llmshed.gateway.relay.job import RelayJob
from llmshed.gateway.ticket import Ticket
from llmshed.observability.endings import Phase


async def serve(gateway: Gateway, visit: Visit) -> web.StreamResponse:
    """Serve one generating request.

    Raises:
        LlmshedError: whatever refuses it; `problems.problem_of` has the answer.
    """
    check_open(gateway, visit)
    pool, call = await read_call(gateway, visit)
    wishes = visit.wishes = read_wishes(visit.request.headers, call)
    asked = await _counted(gateway, visit, pool, call, wishes)
    with await _admitted(gateway, visit, asked) as ticket:
        job = _job(gateway, visit, asked, call, ticket)
        visit.relaying = True
        return await visit.snapshot.relay.serve(job, visit.relayed)


async def _counted(gateway: Gateway, visit: Visit, pool: PoolPolicy, call: Call, wishes: Wishes) -> Request:
    """Count the prompts and state the request in the core's terms.

    Raises:
        RefusedError: the bytes of a prompt alone prove that no replica may take it.
    """
    visit.phase = Phase.COUNTING
    began = gateway.clock.now()
    try:
        try:
            useful = most_useful_tokens(gateway, pool.model)
            counted = await count_call(gateway, pool, call, useful, visit.prompt_sizes)
        except ProvedTooLargeError as error:
            _refuse_unless_possible(gateway, visit, _request(gateway, visit, pool, call, wishes, error.proved))
            # Refused by no limit after all, since a replica with more room came up meanwhile.
            counted = await count_call(gateway, pool, call, sizes=visit.prompt_sizes)
    finally:
        visit.counted_seconds = gateway.clock.now() - began
    visit.asked = _request(gateway, visit, pool, call, wishes, counted)
    visit.untruncated_tokens = counted.untruncated_tokens
    return visit.asked


def _refuse_unless_possible(gateway: Gateway, visit: Visit, least: Request) -> None:
    """Refuse what not even its least possible size lets through; a bound is never told or written down as a count."""
    verdict = gateway.driver.assess(least)
    if verdict.reason is not None:
        visit.verdict = replace(verdict, reservation=None)
        problem = Problem.from_verdict(verdict, least)
        raise RefusedError(replace(problem, message=f"At least {problem.message}", input_tokens=None))


def _request(
    gateway: Gateway, visit: Visit, pool: PoolPolicy, call: Call, wishes: Wishes, counted: CountedCall
) -> Request:
    tenant = visit.tenant or ""
    return Request(
        key=gateway.driver.new_key(),
        tenant=tenant,
        model=pool.model,
        prompt_tokens=counted.prompt_tokens,
        copies=call.copies,
        asked_output_tokens=call.asked_output_tokens,
        asked_intent=wishes.intent,
        asked_class=wishes.priority_class,
        streamed=call.streamed,
        arrived_at=visit.arrived_at,
        deadline=visit.reading_after(wishes.deadline_seconds),
        first_token_deadline=visit.reading_after(wishes.first_token_seconds),
        session=None if wishes.session is None else gateway.hasher.session(tenant, wishes.session),
        prefix_blocks=counted.prefix_blocks,
    )


async def _admitted(gateway: Gateway, visit: Visit, asked: Request) -> Ticket:
    """Bring the request to the core and return its ticket.

    Raises:
        RefusedError: the core refuses it.
    """
    visit.phase = Phase.QUEUE
    began = gateway.clock.now()
    try:
        answer = await gateway.driver.admit(asked)
    finally:
        visit.admitted_at = gateway.clock.now()
        visit.queued_seconds = visit.admitted_at - began
    if isinstance(answer, Verdict):
        visit.verdict = answer
        raise RefusedError(Problem.from_verdict(answer, asked))
    visit.verdict = answer.verdict
    visit.phase = Phase.SENDING
    return answer


def _job(gateway: Gateway, visit: Visit, asked: Request, call: Call, ticket: Ticket) -> RelayJob:
    def headers(verdict: Verdict) -> dict[str, str]:
        return answer_headers(
            visit.request_id,
            verdict,
            input_tokens=asked.input_tokens,
            model=asked.model,
            timings=visit.timings(None if call.streamed else gateway.clock.now()),
            streamed=call.streamed,
            untruncated_tokens=visit.untruncated_tokens,
        )

    lane = ticket.verdict.lane
    if lane is None:
        raise RuntimeError("a request was admitted without a lane")
    return RelayJob(
        request=visit.request,
        admitted=asked,
        call=call,
        ticket=ticket,
        engine=gateway.fleet.engine_of(ticket.replica),
        timeouts=visit.snapshot.timeouts[lane],
        headers=headers,
        request_id=visit.request_id,
    )
