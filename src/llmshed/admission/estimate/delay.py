"""The delay estimate put together from its terms."""

from llmshed.admission.estimate.share import LEAST_SHARE
from llmshed.admission.verdict import DelayTerms


def delay_terms(
    *,
    tokens_ahead: int,
    prefill_tokens_ahead: int,
    release_seconds: float,
    prefill_seconds: float,
    share: float,
    factor: float,
    own_seconds: float,
) -> DelayTerms:
    """Return the delay estimate of a request: max(release / share, prefill) x factor, with every term of it.

    The arguments are as `DelayTerms` tells them; the factor learns from the wait at a factor of 1 (`raw_wait_seconds`).
    """
    wait = raw_wait_seconds(release_seconds, prefill_seconds, share) * factor
    return DelayTerms(
        tokens_ahead=tokens_ahead,
        prefill_tokens_ahead=prefill_tokens_ahead,
        release_seconds=release_seconds,
        prefill_seconds=prefill_seconds,
        share=share,
        factor=factor,
        wait_seconds=wait,
        own_seconds=own_seconds,
    )


def raw_wait_seconds(release_seconds: float, prefill_seconds: float, share: float) -> float:
    """Return the estimate at a factor of 1; the share, above 0, is held to its least value."""
    return max(release_seconds / max(share, LEAST_SHARE), prefill_seconds)
