"""Made-up output lengths."""

import pytest

from fakes.traces import seeded
from llmshed.workload.lengths import ENOUGH_OBSERVED, MOST_KINDS, LengthImputer


def test_nothing_is_made_up_before_anything_was_seen() -> None:
    assert LengthImputer(seeded()).impute(100) is None


def test_a_request_gets_the_length_of_its_like() -> None:
    imputer = LengthImputer(seeded())
    for _ in range(ENOUGH_OBSERVED):
        imputer.observe(100, 10)
        imputer.observe(8000, 500)
    assert {imputer.impute(120) for _ in range(50)} == {10}
    assert all(imputer.impute(7000) == pytest.approx(500, rel=0.01) for _ in range(50))


def test_kinds_are_told_apart() -> None:
    imputer = LengthImputer(seeded())
    for _ in range(ENOUGH_OBSERVED):
        imputer.observe(100, 10, "interactive")
        imputer.observe(100, 1000, "bulk")
    assert imputer.impute(100, "interactive") == 10
    assert imputer.impute(100, "bulk") == 1000


def test_too_few_of_its_like_make_all_of_its_kind_count_and_then_all() -> None:
    imputer = LengthImputer(seeded(2))
    for _ in range(ENOUGH_OBSERVED):
        imputer.observe(100, 10, "interactive")
    imputer.observe(9000, 70, "interactive")
    drawn = {imputer.impute(9000, "interactive") for _ in range(500)}
    assert drawn == {10, 70}
    assert imputer.impute(9000, "bulk") in {10, 70}


def test_drawn_lengths_are_distributed_as_those_seen() -> None:
    rng = seeded(3)
    imputer = LengthImputer(rng)
    for _ in range(5000):
        imputer.observe(100, rng.randint(1, 1000))
    drawn = sorted(imputer.impute(100) or 0 for _ in range(5000))
    # Four standard errors of a median of 5,000 draws from a flat distribution of width 1,000 are 28.
    assert drawn[2500] == pytest.approx(500, abs=2 * 28)
    assert drawn[4500] == pytest.approx(900, abs=2 * 17)


def test_what_was_produced_already_is_less_than_the_whole() -> None:
    rng = seeded(4)
    imputer = LengthImputer(rng)
    for _ in range(2000):
        imputer.observe(100, rng.randint(1, 1000))
    drawn = sorted(imputer.impute(100, produced_tokens=800) or 0 for _ in range(2000))
    assert drawn[0] > 800
    # Flat from 801 to 1,000: the median is 900, with four standard errors of draws and of what was seen.
    assert drawn[1000] == pytest.approx(900, abs=25)


def test_a_request_longer_than_all_seen_is_a_token_longer_than_it_was() -> None:
    imputer = LengthImputer(seeded())
    imputer.observe(100, 10)
    assert imputer.impute(100, produced_tokens=5000) == 5001


def test_names_without_end_take_no_memory() -> None:
    imputer = LengthImputer(seeded())
    for number in range(2 * MOST_KINDS):
        imputer.observe(100, 10, f"tenant-{number}")
    assert len(imputer._by_kind) <= MOST_KINDS + 1
    assert len(imputer._by_likeness) <= MOST_KINDS + 1
