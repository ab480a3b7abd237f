"""Bulk's achieved share by hand."""

import pytest

from llmshed.admission.prefill.achieved import AchievedShare


def test_nothing_has_no_share() -> None:
    assert AchievedShare(0.0).ratio(5.0) is None


def test_a_share_is_bulks_tokens_by_all_tokens() -> None:
    share = AchievedShare(0.0)
    share.count(3_000, 10.0, bulk=False)
    share.count(1_000, 10.0, bulk=True)
    assert share.ratio(10.0) == 0.25


def test_old_prompts_count_for_a_third_after_a_minute_and_for_nothing_in_the_end() -> None:
    share = AchievedShare(0.0)
    share.count(1_000, 0.0, bulk=True)
    share.count(1_000, 60.0, bulk=False)
    assert share.ratio(60.0) == pytest.approx(0.36788 / 1.36788, rel=1e-4)
    assert share.ratio(1_000.0) is None


def test_a_prompt_that_was_given_back_does_not_count() -> None:
    share = AchievedShare(0.0)
    share.count(1_000, 0.0, bulk=False)
    share.count(500, 1.0, bulk=True)
    share.count(-500, 1.0, bulk=True)
    assert share.ratio(1.0) == 0
