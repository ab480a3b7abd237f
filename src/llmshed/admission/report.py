"""A verdict as plain values: the JSON of `llmshed classify`, `/admin/classify` and the decision log."""

import math
from typing import Any

from llmshed.admission.budget import Equation, Reservation
from llmshed.admission.explain import fit_sentence, wait_sentence
from llmshed.admission.reasons import Retry
from llmshed.admission.request import Request
from llmshed.admission.verdict import Decision, DelayTerms, QueueTerms, Verdict, WindowTerms


def verdict_report(verdict: Verdict, request: Request) -> dict[str, Any]:
    """Return every term of a decision; names are stable, and absent terms are null."""
    reservation, equation = verdict.reservation, verdict.equation
    delay, window, queue = verdict.delay, verdict.window, verdict.queue
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
        "delay": None if delay is None else delay_report(delay),
        "window": None if window is None else window_report(window),
        "queue": None if queue is None else queue_report(queue),
        "arrival": verdict.arrival,
        "replica": verdict.replica,
        "pool": verdict.pool,
        "profile": verdict.profile,
        "maximums": None if verdict.maximums is None else verdict.maximums._asdict(),
        "retry_after_seconds": verdict.retry_after_seconds,
        "detail": _detail(verdict),
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


def delay_report(delay: DelayTerms) -> dict[str, Any]:
    """Return the terms of the delay estimate; a term without an end is null, and `endless` names it."""
    terms: dict[str, Any] = {
        "tokens_ahead": delay.tokens_ahead,
        "prefill_tokens_ahead": delay.prefill_tokens_ahead,
        "release_seconds": _millionths(delay.release_seconds),
        "prefill_seconds": _millionths(delay.prefill_seconds),
        "share": _millionths(delay.share),
        "factor": _millionths(delay.factor),
        "wait_seconds": _millionths(delay.wait_seconds),
        "own_seconds": _millionths(delay.own_seconds),
        "promised_seconds": _millionths(delay.promised_seconds),
    }
    terms["endless"] = [name for name, value in terms.items() if value is None]
    return terms


def window_report(window: WindowTerms) -> dict[str, Any]:
    """Return the terms of the prefill window; null is a rate that is not metered, or a bound that does not act."""
    bulk_level = window.bulk_level_tokens
    return {
        "tokens_per_second": window.tokens_per_second,
        "level_tokens": _millionths(window.level_tokens),
        "inflight_tokens": window.inflight_tokens,
        "inflight_limit_tokens": window.inflight_limit_tokens,
        "bulk_level_tokens": None if bulk_level is None else _millionths(bulk_level),
        "bulk_credit_tokens": _millionths(window.bulk_credit_tokens),
    }


def queue_report(queue: QueueTerms) -> dict[str, Any]:
    """Return a lane's queue in a pool and its bounds."""
    return {
        "requests": queue.requests,
        "tokens": queue.tokens,
        "most_requests": queue.most_requests,
        "most_tokens": queue.most_tokens,
        "max_residence_seconds": _millionths(queue.max_residence_seconds),
    }


def _detail(verdict: Verdict) -> str:
    """Return the verdict as a sentence; empty where nothing was weighed."""
    if verdict.detail or verdict.equation is None or verdict.reservation is None:
        return verdict.detail
    if verdict.decision is Decision.QUEUE and verdict.delay is not None and verdict.queue is not None:
        return wait_sentence(verdict.reservation, verdict.equation, verdict.delay, verdict.queue)
    return fit_sentence(verdict.equation, verdict.reservation)


def _millionths(number: float) -> float | None:
    """Return a number to the millionth, since finer digits are noise; None for one without an end, as JSON has none."""
    return round(number, 6) if math.isfinite(number) else None


def _fits(verdict: Verdict) -> bool:
    """Say whether the reservation fits the equation; what is refused for good fits nowhere, whatever is free."""
    for_good = verdict.reason is not None and verdict.reason.row.retry is Retry.NEVER
    if for_good or verdict.reservation is None or verdict.equation is None:
        return False
    return verdict.equation.fits(verdict.reservation)
