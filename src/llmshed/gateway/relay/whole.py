"""The relay of an answer that is not streamed."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from llmshed.admission.verdict import Verdict
from llmshed.gateway.contract.problem import PassedTime, Timeout
from llmshed.gateway.relay.failures import broken_off, fell_silent, told_by_engine
from llmshed.gateway.relay.headers import client_headers
from llmshed.gateway.relay.job import RelayJob
from llmshed.gateway.relay.outcome import RelayOutcome
from llmshed.gateway.relay.upstream import LostError, UpstreamAnswer, read_whole
from llmshed.observability.metrics import UpstreamErrorKind


async def relay_whole(
    send: Callable[[], Awaitable[UpstreamAnswer]], job: RelayJob, verdict: Verdict, outcome: RelayOutcome
) -> web.Response:
    """Send the request, read the whole answer and return it unchanged under the gateway's headers.

    Raises:
        NotSentError: the replica read no byte.
        ExchangeError: the engine told an error, was lost, or took longer than the lane and the ceiling permit.
    """
    limit_seconds = job.timeouts.whole_answer_seconds(verdict.output_ceiling_tokens or 0)
    try:
        async with asyncio.timeout(limit_seconds):
            answer = await send()
            try:
                body = await read_whole(answer)
            finally:
                answer.close()
    except TimeoutError:
        timeout = Timeout(PassedTime.WHOLE_ANSWER, limit_seconds)
        raise fell_silent(timeout, UpstreamErrorKind.FIRST_BYTE_TIMEOUT, job, verdict) from None
    except LostError as error:
        raise broken_off(str(error), UpstreamErrorKind.LOST, job, verdict) from error
    if answer.status != 200:
        failure = job.engine.read_failure(answer.status, body)
        raise told_by_engine(failure, UpstreamErrorKind.STATUS, job, verdict)
    if (hidden := job.engine.find_failure(body)) is not None:
        raise told_by_engine(hidden, UpstreamErrorKind.STATUS, job, verdict)
    outcome.output_tokens = job.engine.read_output_tokens(job.call, answer.headers, body)
    outcome.engine_input_tokens = job.engine.read_input_tokens(answer.headers)
    return web.Response(body=body, headers=client_headers(answer.headers, job.headers(verdict)))
