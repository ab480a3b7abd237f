"""Shares of what comes free against hand-made sums."""

import pytest

from llmshed.admission.estimate.share import LEAST_SHARE, ReleaseShares
from llmshed.admission.request import SERVICE_RANKS


def churned(releases: int, taken_by: dict[int, int], now: float = 0.0) -> ReleaseShares:
    """Release 1,000 tokens so often, and let each rank take its part of them."""
    shares = ReleaseShares()
    for _ in range(releases):
        shares.released(1_000, now)
        for rank, tokens in taken_by.items():
            shares.took(rank, tokens, now)
    return shares


def test_everything_is_left_before_anything_was_released() -> None:
    assert [ReleaseShares().left_for(rank, 0.0) for rank in range(SERVICE_RANKS)] == [1.0] * SERVICE_RANKS


def test_a_rank_is_left_what_the_higher_ones_do_not_take() -> None:
    """90 releases count by 90/100: of 600 in 1,000 taken by rank 0 and 300 by rank 3, 0.54 and 0.27 are believed."""
    shares = churned(90, {0: 600, 3: 300})
    left = [shares.left_for(rank, 0.0) for rank in range(SERVICE_RANKS)]
    assert left == pytest.approx([1.0, 0.46, 0.46, 0.46, 0.19, 0.19])


def test_a_few_releases_prove_little() -> None:
    assert churned(1, {0: 1_000}).left_for(1, 0.0) == pytest.approx(10 / 11)


def test_something_is_always_left() -> None:
    assert churned(5_000, {0: 1_000}).left_for(1, 0.0) == LEAST_SHARE


def test_room_that_was_free_all_along_is_nobodys_share() -> None:
    shares = ReleaseShares()
    for _ in range(100):
        shares.took(0, 1_000, 0.0)
    for _ in range(90):
        shares.released(1_000, 1.0)
    assert shares.left_for(1, 1.0) == 1.0


def test_a_mix_that_changed_is_forgotten_within_a_minute() -> None:
    shares = churned(900, {0: 1_000})
    for second in range(1, 61):
        for _ in range(10):
            shares.released(1_000, float(second))
            shares.took(3, 1_000, float(second))
    assert shares.left_for(1, 60.0) > 0.75
    assert shares.left_for(4, 60.0) < 0.1
