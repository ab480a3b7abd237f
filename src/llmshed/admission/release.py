"""When reserved tokens come free by their ceilings: prefill ends, and when a tenant's quota has room again.

For a running charge with input i and ceiling c, and a replica with prefill rate p and decode time d a token:

    prefill end   P = max(dispatched, P of the charge before it) + i / p
    expected end  E = first token + c d, before it P + c d

An engine works on prompts in the order of their dispatch. A stream shows when its prefill is over: while it has not, P
is not in the past. An answer that is not streamed shows nothing, so its prefill ends as predicted.

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


def prefill_ends(charges: Iterable[Charge], budget: ReplicaBudget, now: float) -> dict[int, float]:
    """Return when the prefill of each charge without a first token is predicted to end, by its key.

    `charges` come in the order of their dispatch. The prefill of a client that is gone goes on too.
    """
    ends: dict[int, float] = {}
    before = float("-inf")
    for charge in charges:
        if charge.first_token_at is not None:
            continue
        end = max(before, charge.dispatched_at) + prefill_seconds(charge.reservation.input_tokens, budget)
        if charge.streamed and charge.release_at is None:
            end = max(end, now)
        ends[charge.key] = before = end
    return ends


def releases_by_charge(
    charges: Iterable[Charge], budget: ReplicaBudget, now: float
) -> Iterator[tuple[Charge, Release]]:
    """Yield each charge with its expected release, in the order of dispatch, none before `now`."""
    decode_seconds = budget.decode_seconds_per_token or UNKNOWN_DECODE_SECONDS_PER_TOKEN
    charges = list(charges)
    ends = prefill_ends(charges, budget, now)
    for charge in charges:
        started = ends[charge.key] if charge.first_token_at is None else charge.first_token_at
        at = charge.release_at
        if at is None:
            at = started + charge.output_ceiling_tokens * decode_seconds
            at = at if at > now else now + OVERDUE_SECONDS
        yield charge, Release(max(at, now), charge.reservation.total_tokens, charge.reservation.sequences)


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
