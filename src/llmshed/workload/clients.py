"""What clients do after a refusal, which decides whether an overload feeds itself.

Four kinds, from the gentlest to the worst, each a pure function of the answer and of how often it has tried. A retry
is the same request again; where the client says so (`x-stainless-retry-count`), it sends the count of its retries.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from random import Random

POLITE_RETRIES = 4
POLITE_FIRST_SECONDS = 1.0
POLITE_LONGEST_SECONDS = 60.0
POLITE_PATIENCE_SECONDS = 600.0
"""A client that was told to come back later than this gives up: nobody waits that long for an answer."""
POLITE_JITTER_RATIO = 0.25

# openai-python 3.57; the other SDKs of the same generator have the same numbers.
SDK_RETRIES = 2
SDK_FIRST_SECONDS = 0.5
SDK_LONGEST_SECONDS = 8.0
SDK_JITTER_RATIO = 0.25
SDK_PATIENCE_SECONDS = 120.0
SDK_STATUSES = frozenset({408, 409, 429})

RUDE_RETRIES = 50
RUDE_PAUSE_SECONDS = 0.05
"""A round trip: no client comes back faster."""


class ClientModel(StrEnum):
    """A kind of client."""

    NONE = "none"
    """Gives up at the first refusal."""
    POLITE = "polite"
    """Honours every header, adds jitter, backs off, tries a few times."""
    SDK = "sdk"
    """openai-python with its defaults: the commonest client there is."""
    RUDE = "rude"
    """A loop around the request: at once, many times, whatever the answer was."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer other than success, as a client sees it.

    Args:
        status: the HTTP status, 400 or above.
        retry_after_seconds: wait of `retry-after-ms`, else of `Retry-After`; None without them.
        should_retry: `x-should-retry`; None without it.
    """

    status: int
    retry_after_seconds: float | None = None
    should_retry: bool | None = None


def retry_wait_seconds(model: ClientModel, refusal: Refusal, retries: int, rng: "Random") -> float | None:
    """Return how long a client waits before it sends the request again; None when it gives up.

    Args:
        model: the kind of client.
        refusal: the answer that it got.
        retries: how often it has already sent the request again: 0 after the first answer.
        rng: what jitter is drawn from.
    """
    match model:
        case ClientModel.NONE:
            return None
        case ClientModel.POLITE:
            return _polite(refusal, retries, rng)
        case ClientModel.SDK:
            return _sdk(refusal, retries, rng)
        case ClientModel.RUDE:
            return RUDE_PAUSE_SECONDS if retries < RUDE_RETRIES else None
        case _:
            assert_never(model)


def _polite(refusal: Refusal, retries: int, rng: "Random") -> float | None:
    """Retry what is busy or away, never before the time told, spread out above it.

    502 and 504 are left alone: the engine may have done the work. Without a time told it is exponential backoff with
    full jitter.
    """
    if retries >= POLITE_RETRIES or refusal.status not in {429, 503} or refusal.should_retry is False:
        return None
    told = refusal.retry_after_seconds
    if told is None:
        return rng.uniform(0.0, min(POLITE_FIRST_SECONDS * 2.0**retries, POLITE_LONGEST_SECONDS))
    return told * rng.uniform(1.0, 1.0 + POLITE_JITTER_RATIO) if told <= POLITE_PATIENCE_SECONDS else None


def _sdk(refusal: Refusal, retries: int, rng: "Random") -> float | None:
    """Retry as openai-python does: a wait of up to two minutes is kept to the millisecond, a longer one gives up."""
    told = refusal.retry_after_seconds
    if retries >= SDK_RETRIES or (told is not None and told > SDK_PATIENCE_SECONDS):
        return None
    by_status = refusal.status in SDK_STATUSES or refusal.status >= 500
    if not (by_status if refusal.should_retry is None else refusal.should_retry):
        return None
    if told is not None and told > 0:
        return told
    longest = min(SDK_FIRST_SECONDS * 2.0**retries, SDK_LONGEST_SECONDS)
    return longest * (1.0 - SDK_JITTER_RATIO * rng.random())
