"""A verdict as plain data: the one object that `classify` prints and `/admin/classify` answers."""

from dataclasses import asdict
from typing import Any

from llmshed.admission.budget import Equation
from llmshed.admission.verdict import Verdict


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """Return every number of a verdict; a field that was not decided is None.

    `fits` is None when no replica's equation was asked: a request that no replica could ever take neither fits nor
    fails to.
    """
    equation, reservation = verdict.equation, verdict.reservation
    return {
        "verdict": verdict.decision,
        "reason": verdict.reason,
        "status": verdict.status,
        "lane": verdict.lane,
        "intent": verdict.intent,
        "priority_class": verdict.priority_class,
        "fits": equation.fits(reservation) if equation is not None and reservation is not None else None,
        "reservation_tokens": None if reservation is None else reservation.total_tokens,
        "reservation": None if reservation is None else asdict(reservation),
        "output_ceiling_tokens": verdict.output_ceiling_tokens,
        "equation": None if equation is None else equation_record(equation),
        "replica": verdict.replica,
        "pool": verdict.pool,
        "profile": verdict.profile,
        "maximums": None if verdict.maximums is None else asdict(verdict.maximums),
        "retry_after_seconds": verdict.retry_after_seconds,
        "detail": verdict.detail,
        "advice": list(verdict.advice),
    }


def equation_record(equation: Equation) -> dict[str, int]:
    """Return the terms of the equation with the sums that they define, so that a reader needs no arithmetic."""
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
