"""When reserved tokens come free: the release schedule of a replica, and Retry-After from it.

For a running charge with input i and ceiling c, and a replica with prefill rate p and decode time d a token:

    prefill end   P = dispatched + (input dispatched before it and without a first token + i) / p
    expected end  E = max(P, first token) + c d

The ceiling stands for the output that nobody knows, so E is conservative. A charge that has outlived its E is expected
to end within `OVERDUE_SECONDS`. The wait for a need of n tokens and s sequences is the first instant at which the
charges that ended by then gave back enough of both.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from llmshed.admission.ledger import Charge
from llmshed.admission.policy import ReplicaBudget

UNKNOWN_PREFILL_TOKENS_PER_SECOND = 1000.0
"""Assumed while no profile tells a rate: slower than any GPU that llmshed is put in front of, so waits err long."""
UNKNOWN_DECODE_SECONDS_PER_TOKEN = 0.1
"""Assumed while no profile tells it: the default TPOT objective."""
OVERDUE_SECONDS = 1.0
"""When a charge that should have ended is expected to end."""


class Release(NamedTuple):
    """Tokens and seats that are expected back at an instant."""

    at: float
    tokens: int
    sequences: int


def prefill_seconds(input_tokens: int, budget: ReplicaBudget) -> float:
    """Return how long the replica works on that much input when nothing else is in its way."""
    return input_tokens / (budget.prefill_tokens_per_second or UNKNOWN_PREFILL_TOKENS_PER_SECOND)


def prefill_end(charge: Charge, charges: Iterable[Charge], budget: ReplicaBudget) -> float:
    """Return when the prefill of `charge` is predicted to end; engines are first come first served."""
    ahead = sum(
        c.reservation.input_tokens
        for c in charges
        if c.key != charge.key and c.first_token_at is None and c.dispatched_at <= charge.dispatched_at
    )
    return charge.dispatched_at + prefill_seconds(ahead + charge.reservation.input_tokens, budget)


def schedule(charges: Iterable[Charge], budget: ReplicaBudget, now: float) -> list[Release]:
    """Return the expected releases of a replica's charges, earliest first, none before `now`."""
    return sorted(_releases(charges, budget, now))


def wait_seconds(releases: Iterable[Release], need_tokens: int, need_sequences: int, now: float) -> float | None:
    """Return how long until that much is free; 0 for no need, None when the releases never give enough."""
    if need_tokens <= 0 and need_sequences <= 0:
        return 0.0
    for release in releases:
        need_tokens -= release.tokens
        need_sequences -= release.sequences
        if need_tokens <= 0 and need_sequences <= 0:
            return max(0.0, release.at - now)
    return None


def _releases(charges: Iterable[Charge], budget: ReplicaBudget, now: float) -> Iterator[Release]:
    decode_seconds = budget.decode_seconds_per_token or UNKNOWN_DECODE_SECONDS_PER_TOKEN
    in_prefill_tokens = 0
    for charge in charges:  # in the order of dispatch, which is the order of an engine's own queue
        started = charge.first_token_at
        if started is None:  # a gone client's prefill goes on too
            in_prefill_tokens += charge.reservation.input_tokens
            started = charge.dispatched_at + prefill_seconds(in_prefill_tokens, budget)
        at = charge.release_at
        if at is None:
            at = started + charge.output_ceiling_tokens * decode_seconds
            at = at if at > now else now + OVERDUE_SECONDS
        yield Release(max(at, now), charge.reservation.total_tokens, charge.reservation.sequences)
