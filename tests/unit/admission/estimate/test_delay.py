"""The delay estimate of its terms, by hand."""

import pytest

from llmshed.admission.estimate.delay import delay_terms, raw_wait_seconds
from llmshed.admission.verdict import DelayTerms


@pytest.mark.parametrize(
    ("release", "prefill", "wait", "prefill_binds"),
    [(2.0, 3.0, 6.0, False), (1.0, 4.0, 6.0, True), (0.0, 0.0, 0.0, False), (float("inf"), 1.0, float("inf"), False)],
)
def test_the_later_term_times_the_factor(release: float, prefill: float, wait: float, *, prefill_binds: bool) -> None:
    terms = delay_terms(
        tokens_ahead=8_000,
        prefill_tokens_ahead=6_000,
        release_seconds=release,
        prefill_seconds=prefill,
        share=0.5,
        factor=1.5,
        own_seconds=0.7,
    )
    assert terms == DelayTerms(8_000, 6_000, release, prefill, 0.5, 1.5, wait, 0.7, 0.0)
    assert terms.prefill_binds is prefill_binds


def test_a_share_of_nothing_is_held_to_its_least() -> None:
    assert raw_wait_seconds(1.0, 0.5, 0.0) == pytest.approx(50.0)
