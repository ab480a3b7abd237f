"""A verdict as plain values: the JSON of `llmshed classify`, `/admin/classify` and the decision log."""

from dataclasses import asdict
from typing import Any

from llmshed.admission.budget import Equation, Reservation
from llmshed.admission.explain import fit_sentence
from llmshed.admission.reasons import Retry
from llmshed.admission.request import Request
from llmshed.admission.verdict import Verdict


def verdict_report(verdict: Verdict, request: Request) -> dict[str, Any]:
    """Return every term of a decision; names are stable, and absent terms are null."""
    reservation, equation = verdict.reservation, verdict.equation
    detail = verdict.detail
    if not detail and equation is not None and reservation is not None:
        detail = fit_sentence(equation, reservation)
    return {
        "verdict": verdict.decision.value,
        "reason": verdict.reason,
        "status": verdict.status,
        "lane": verdict.lane,
        "intent": verdict.intent,
        "priority_class": verdict.priority_class,
        "input_tokens": request.input_tokens,
        "requested_output_tokens": request.asked_output_tokens,
        "output_ceiling_tokens": verdict.output_ceiling_tokens,
        "reservation_tokens": None if reservation is None else reservation.total_tokens,
        "reservation": None if reservation is None else reservation_report(reservation),
        "fits": _fits(verdict),
        "equation": None if equation is None else equation_report(equation),
        "replica": verdict.replica,
        "pool": verdict.pool,
        "profile": verdict.profile,
        "maximums": None if verdict.maximums is None else asdict(verdict.maximums),
        "retry_after_seconds": verdict.retry_after_seconds,
        "detail": detail,
        "advice": [advice.value for advice in verdict.advice],
    }


def equation_report(equation: Equation) -> dict[str, int]:
    """Return the terms of the equation and the sums that it defines, so that a reader needs no arithmetic."""
    return {
        "gross_ceiling_tokens": equation.gross_ceiling_tokens,
        "guard_band_tokens": equation.guard_band_tokens,
        "safe_budget_tokens": equation.safe_budget_tokens,
        "active_tokens": equation.active_tokens,
        "queued_tokens": equation.queued_tokens,
        "headroom_tokens": equation.headroom_tokens,
        "active_sequences": equation.active_sequences,
        "hard_cap_sequences": equation.hard_cap_sequences,
        "free_sequences": equation.free_sequences,
    }


def reservation_report(reservation: Reservation) -> dict[str, int]:
    """Return the terms of the reservation and their sum."""
    return {
        "input_tokens": reservation.input_tokens,
        "output_tokens": reservation.output_tokens,
        "overrun_tokens": reservation.overrun_tokens,
        "sequences": reservation.sequences,
        "total_tokens": reservation.total_tokens,
    }


def _fits(verdict: Verdict) -> bool:
    """Say whether the reservation fits the equation; what is refused for good fits nowhere, whatever is free."""
    for_good = verdict.reason is not None and verdict.reason.row.retry is Retry.NEVER
    if for_good or verdict.reservation is None or verdict.equation is None:
        return False
    return verdict.equation.fits(verdict.reservation)
