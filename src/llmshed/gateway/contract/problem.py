"""A refusal before it is put into HTTP: the reason, its sentence, and the numbers that a caller can act on."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Self

from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, Request
from llmshed.admission.verdict import AcceptedMaximums, Advice, Verdict
from llmshed.engines.base import BodyError, EngineFailure

ENGINE_STATUSES: Final = (400, 413, 415, 422)
"""Statuses by which an engine says that a request is wrong; they are passed on."""


class PassedTime(StrEnum):
    """Which time passed while an engine had a request."""

    FIRST_BYTE = "first_byte"
    """The lane's, from the request to the first event of a stream."""
    IDLE = "idle"
    """The lane's, between two events of a stream."""
    WHOLE_ANSWER = "whole_answer"
    """The lane's for an answer that is not streamed, by its output ceiling."""
    DEADLINE = "deadline"
    """The request's own, for its whole answer."""
    FIRST_TOKEN = "first_token"  # noqa: S105 - a token of text
    """The request's own, for the beginning of its answer."""


class Timeout(NamedTuple):
    """A time that passed, and how many seconds it was."""

    which: PassedTime
    seconds: float


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request is not served.

    Args:
        reason: the stable word.
        message: one sentence for people, without retry time, limits or tail, which the contract adds.
        lane: lane that the request was classified into; None before that.
        maximums: the accepted maximums; None when they do not matter or are not known yet.
        input_tokens: counted input tokens of all sequences together; None before they were counted.
        longest_prompt_tokens: those of the longest prompt, which the maximums apply to; None likewise.
        requested_output_tokens: output ceiling asked for; None when the request named none.
        retry_after_seconds: conservative estimate of the wait, before jitter; None when unknown.
        advice: what the caller can change.
        param: field that is to blame.
        status: status of an engine that is passed on; None for the reason's own.
        error_type: the engine's own word, likewise.
        model: model that the request was matched to; None before that.
        budget_tokens: safe budget of the replica whose terms bind, told as the quota of a 429.
        allow: methods that the route takes, for `method_not_allowed`.
        deadline_seconds: arrival to the request's own deadline of its whole answer, where that is why; else None.
        first_token_seconds: the same for the beginning of its answer.
        timeout: the time that passed while an engine had the request; None when it failed otherwise.
        degradations: ladder actions that changed the request before it was refused.
    """

    reason: Reason
    message: str
    lane: Lane | None = None
    maximums: AcceptedMaximums | None = None
    input_tokens: int | None = None
    longest_prompt_tokens: int | None = None
    requested_output_tokens: int | None = None
    retry_after_seconds: float | None = None
    advice: tuple[Advice, ...] = ()
    param: str | None = None
    status: int | None = None
    error_type: str | None = None
    model: str | None = None
    budget_tokens: int | None = None
    allow: tuple[str, ...] = ()
    deadline_seconds: float | None = None
    first_token_seconds: float | None = None
    timeout: Timeout | None = None
    degradations: tuple[str, ...] = ()

    @property
    def http_status(self) -> int:
        """Return the status of the answer."""
        return self.reason.row.status if self.status is None else self.status

    @classmethod
    def from_verdict(cls, verdict: Verdict, request: Request | None = None) -> Self:
        """Return the problem of a refusing verdict; `request` adds its counts, and is None for the early gates.

        Raises:
            ValueError: the verdict refuses nothing, so that answering it would tell a lie.
        """
        if verdict.reason is None:
            raise ValueError(f"a verdict to {verdict.decision} is no refusal")
        late = None if verdict.reason is not Reason.DEADLINE_INFEASIBLE else request
        return cls(
            reason=verdict.reason,
            message=verdict.detail or verdict.reason.row.meaning,
            lane=verdict.lane,
            maximums=verdict.maximums,
            input_tokens=None if request is None else request.input_tokens,
            longest_prompt_tokens=None if request is None else request.longest_prompt_tokens,
            requested_output_tokens=None if request is None else request.asked_output_tokens,
            retry_after_seconds=verdict.retry_after_seconds,
            advice=verdict.advice,
            model=None if request is None or verdict.reason is Reason.NOT_FOUND else request.model,
            budget_tokens=None if verdict.equation is None else verdict.equation.safe_budget_tokens,
            degradations=verdict.degradations,
            deadline_seconds=None if late is None else _after_arrival(late, late.deadline),
            first_token_seconds=None if late is None else _after_arrival(late, late.first_token_deadline),
        )

    @classmethod
    def from_body_error(cls, error: BodyError) -> Self:
        """Return the problem of a request that was refused before it was counted."""
        return cls(reason=error.reason, message=str(error), param=error.param)

    @classmethod
    def from_engine_failure(cls, reason: Reason, failure: EngineFailure, admitted: Verdict) -> Self:
        """Return the problem of an engine's own error, whose status, text and word are passed on.

        A status that does not say that the request is wrong would contradict the text, so the reason's own takes its
        place: clients repeat what a 503 answers, and follow a 307.
        """
        return cls(
            reason=reason,
            message=failure.message,
            lane=admitted.lane,
            maximums=admitted.maximums,
            status=failure.status if failure.status in ENGINE_STATUSES else None,
            error_type=failure.error_type,
            degradations=admitted.degradations,
        )


def _after_arrival(request: Request, reading: float | None) -> float | None:
    """Return how long after the arrival of the request a clock reading is; None for None."""
    return None if reading is None else reading - request.arrived_at
