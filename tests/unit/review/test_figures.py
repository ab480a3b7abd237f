"""A day by hand: what was refused in tokens, who starved, which pool stood idle, and what is not known."""

import math
from typing import Any

import pytest

from llmshed.review.figures import PoolUse, Refusals, Review, Waiting, review_of

DAY = 86_400.0
ANSWERS: dict[str, dict[tuple[str, ...], float]] = {
    "known": {(): 5_760.0},
    "arrived": {("interactive",): 1_000.0, ("bulk",): 50.0},
    "refused": {
        ("interactive", "queue_full"): 100.0,
        ("interactive", "token_budget_exhausted"): 300.0,
        ("bulk", "lane_limit"): 0.2,
        ("bulk", "tenant_quota"): math.nan,
    },
    "served": {("interactive",): 600.0, ("bulk",): 50.0},
    "good": {("interactive",): 0.9},
    "ttft_p95": {("interactive",): 1.5, ("bulk",): math.nan},
    "oldest_wait": {("bulk", "main"): 900.0, ("interactive", "main"): 2.0},
    "starving": {("bulk", "main"): 0.25},
    "utilised": {("main",): 0.7, ("batch",): 0.1},
    "idle": {("batch",): 0.8},
    "ran": {("bulk", "main"): 1.0, ("interactive", "main"): 1.0, ("bulk", "batch"): 1.0},
    "input_mean": {("interactive",): 400.0},
    "asked_mean": {("interactive",): 100.0},
    "used_mean": {("interactive",): 25.0},
    "profiles": {("b@2",): 1.0, ("a@1",): 1.0},
}


def review(**changes: Any) -> Review:
    return review_of(ANSWERS | changes, {}, DAY, 15.0)


def test_refused_tokens_are_requests_times_the_mean_request_of_their_lane() -> None:
    found = review()
    assert found.refused == (
        Refusals("interactive", "token_budget_exhausted", 300.0, 150_000.0, 0.3),
        Refusals("interactive", "queue_full", 100.0, 50_000.0, 0.1),
    )
    assert found.refused_tokens == 200_000.0


def test_a_size_that_is_not_known_makes_no_tokens() -> None:
    found = review(refused={("bulk", "queue_full"): 10.0})
    assert found.refused == (Refusals("bulk", "queue_full", 10.0, None, 0.2),)
    assert found.refused_tokens is None


def test_the_longest_wait_comes_first_and_what_is_no_number_is_not_known() -> None:
    found = review()
    assert found.waiting == (
        Waiting("bulk", "main", 900.0, None, 0.25),
        Waiting("interactive", "main", 2.0, None, None),
    )
    (bulk,) = (one for one in found.served if one.lane == "bulk")
    assert (bulk.requests, bulk.good, bulk.ttft_p95) == (50.0, None, None)


def test_a_pool_of_one_lane_is_dedicated() -> None:
    batch, main = review().pools
    assert batch == PoolUse("batch", ("bulk",), 0.1, None, 0.8, None, None)
    assert (batch.dedicated, main.dedicated, main.lanes) == (True, False, ("bulk", "interactive"))


def test_what_was_made_of_what_was_reserved() -> None:
    sizes = {one.lane: one for one in review().sizes}
    assert sizes["interactive"].used_share == pytest.approx(0.25)
    assert sizes["bulk"].used_share is None


def test_it_is_told_for_which_part_of_the_span_anything_is_known() -> None:
    assert review().known_share == 1.0
    assert review(known={(): 2_880.0}).known_share == pytest.approx(0.5)
    assert review(known={}).known_share is None


def test_nothing_at_all_is_said_to_be_nothing() -> None:
    found = review_of({}, {"good": "no answer within 9 s"}, DAY, 15.0)
    assert found.is_empty
    assert not review().is_empty
    assert review().profiles == ("a@1", "b@2")
