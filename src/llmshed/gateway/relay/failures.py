"""The ways in which an exchange fails after the request was sent, and what each means for client and replica."""

from typing import assert_never

from llmshed.admission.reasons import Reason
from llmshed.admission.verdict import Verdict
from llmshed.engines.base import EngineFailure, UpstreamFault
from llmshed.gateway.contract.problem import PassedTime, Problem, Timeout
from llmshed.gateway.relay.job import RelayJob
from llmshed.gateway.relay.term import Term
from llmshed.observability.endings import EndedBy
from llmshed.observability.metrics import UpstreamErrorKind

BUSY_RETRY_SECONDS = 1.0
"""Retry-After when an engine refuses by its own permits and nothing is known of when they come free."""


class ExchangeError(Exception):
    """An exchange that failed after the request was sent.

    Args:
        problem: what the client is told.
        kind: how the replica failed; None when the failure is none of its own.
        engine_holds: whether the engine may still be generating.
        ended_by: who ended it.
    """

    def __init__(
        self,
        problem: Problem,
        kind: UpstreamErrorKind | None,
        *,
        engine_holds: bool = False,
        ended_by: EndedBy = EndedBy.UPSTREAM,
    ) -> None:
        """Keep the consequences beside the problem."""
        super().__init__(problem.message)
        self.problem = problem
        self.kind = kind
        self.engine_holds = engine_holds
        self.ended_by = ended_by


def told_by_engine(failure: EngineFailure, kind: UpstreamErrorKind, job: RelayJob, verdict: Verdict) -> ExchangeError:
    """Return the error for what an engine told, by a status or inside a stream as `kind` says.

    A busy engine is contention; a client's own fault keeps its status and is not held against the replica.
    """
    match failure.fault:
        case UpstreamFault.BUSY:
            busy = Problem(
                reason=Reason.CONCURRENCY_LIMIT,
                message="The replica's own seats are all taken.",
                lane=verdict.lane,
                maximums=verdict.maximums,
                input_tokens=job.admitted.input_tokens or None,  # 0 of one that was let through uncounted
                requested_output_tokens=job.admitted.asked_output_tokens,
                retry_after_seconds=verdict.retry_after_seconds or BUSY_RETRY_SECONDS,
                model=job.admitted.model,
                degradations=verdict.degradations,
            )
            return ExchangeError(busy, UpstreamErrorKind.BUSY)
        case UpstreamFault.CLIENT:
            return ExchangeError(Problem.from_engine_failure(Reason.MALFORMED, failure, verdict), None)
        case UpstreamFault.ENGINE:
            failed = _upstream_problem(Reason.UPSTREAM_ERROR, f"The engine failed: {failure.message}", job, verdict)
            return ExchangeError(failed, kind)
        case _:
            assert_never(failure.fault)


def broken_off(message: str, kind: UpstreamErrorKind, job: RelayJob, verdict: Verdict) -> ExchangeError:
    """Return the error for a replica that was lost, or broke its own protocol, after it may have read the request."""
    return ExchangeError(_upstream_problem(Reason.UPSTREAM_ERROR, message, job, verdict), kind)


def fell_silent(timeout: Timeout, kind: UpstreamErrorKind, job: RelayJob, verdict: Verdict) -> ExchangeError:
    """Return the error for an engine whose silence passed a time of the lane; it may well be at work."""
    message = f"The engine was silent for the {timeout.seconds:g} s that the lane permits."
    problem = _upstream_problem(Reason.UPSTREAM_TIMEOUT, message, job, verdict, timeout)
    return ExchangeError(problem, kind, engine_holds=True, ended_by=EndedBy.GATEWAY)


def past_deadline(term: Term, job: RelayJob, verdict: Verdict, *, sent: bool) -> ExchangeError:
    """Return the error for a request whose own deadline passed, which is nothing that the replica did.

    `sent` says whether the engine was given the request; it may then still be at work on it.
    """
    missed = "began" if term.awaits_beginning else "was complete"
    timeout = Timeout(PassedTime.FIRST_TOKEN if term.awaits_beginning else PassedTime.DEADLINE, term.granted_seconds)
    message = f"The request's own deadline of {term.granted_seconds:.6g} s passed before its answer {missed}."
    problem = _upstream_problem(Reason.UPSTREAM_TIMEOUT, message, job, verdict, timeout)
    return ExchangeError(problem, None, engine_holds=sent, ended_by=EndedBy.DEADLINE)


def given_up(job: RelayJob, verdict: Verdict) -> ExchangeError:
    """Return the error for an answer that outlived the drain window of a gateway that shuts down."""
    message = "The gateway shuts down and the answer did not end within its drain window."
    problem = _upstream_problem(Reason.UPSTREAM_ERROR, message, job, verdict)
    return ExchangeError(problem, None, engine_holds=True, ended_by=EndedBy.GATEWAY)


def _upstream_problem(
    reason: Reason, message: str, job: RelayJob, verdict: Verdict, timeout: Timeout | None = None
) -> Problem:
    return Problem(
        reason=reason,
        message=message,
        lane=verdict.lane,
        maximums=verdict.maximums,
        model=job.admitted.model,
        timeout=timeout,
        degradations=verdict.degradations,
    )
