"""The sentences that a verdict is told in: the equation with its numbers, and what a caller can change."""

import math

from llmshed.admission.budget import Equation, Reservation
from llmshed.admission.verdict import DelayTerms, QueueTerms


def equation_sentence(equation: Equation) -> str:
    """Return `96,000 gross - 9,600 guard - 58,000 active - 8,000 queued = 20,400 free`."""
    return (
        f"{equation.gross_ceiling_tokens:,} gross - {equation.guard_band_tokens:,} guard"
        f" - {equation.active_tokens:,} active - {equation.queued_tokens:,} queued"
        f" = {equation.headroom_tokens:,} free tokens"
    )


def reservation_sentence(reservation: Reservation) -> str:
    """Return `14,000 input + 4,000 output = 18,000 tokens`, naming an overrun and further sequences where there are."""
    overrun = f" + {reservation.overrun_tokens:,} engine overrun" if reservation.overrun_tokens else ""
    sequences = f" over {reservation.sequences} sequences" if reservation.sequences > 1 else ""
    return (
        f"{reservation.input_tokens:,} input + {reservation.output_tokens:,} output{overrun}"
        f" = {reservation.total_tokens:,} tokens{sequences}"
    )


def fit_sentence(equation: Equation, reservation: Reservation) -> str:
    """Say whether and why the reservation fits, with every number that decides."""
    fits = "fits" if equation.fits(reservation) else "does not fit"
    return (
        f"{reservation_sentence(reservation)} {fits}: {equation_sentence(equation)};"
        f" {equation.active_sequences} of {equation.hard_cap_sequences} sequences run"
    )


def wait_sentence(reservation: Reservation, equation: Equation, delay: DelayTerms, queue: QueueTerms) -> str:
    """Say how long it would wait and for what, with the numbers of the term that binds."""
    wait = "for longer than can be foreseen" if math.isinf(delay.wait_seconds) else f"for {delay.wait_seconds:.1f} s"
    ahead = f"{queue.requests:,} of {queue.most_requests:,} requests wait in its lane"
    if delay.prefill_binds:
        return f"it would wait {wait} behind {delay.prefill_tokens_ahead:,} prompt tokens; {ahead}"
    return f"{fit_sentence(equation, reservation)}; it would wait {wait}; {ahead}"
