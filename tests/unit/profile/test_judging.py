"""A pace is believed to have changed after five minutes, not before, and to be well again after five."""

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmshed.profile.comparison import Match
from llmshed.profile.judging import MOST_SAMPLES, OFF_RATIO, WINDOW_SECONDS, WINDOWS_IN_A_ROW, PaceJudge

WELL, SLOW, FAST = 1.0, 1.25, 0.75


class Minutes:
    """A judge that is told one ratio a minute, three times."""

    def __init__(self) -> None:
        self.judge = PaceJudge(3)
        self._minutes = count()
        self.minute()

    def minute(self, *ratios: float) -> Match:
        """Let a minute pass with these samples in it."""
        begins = next(self._minutes) * WINDOW_SECONDS
        for number, ratio in enumerate(ratios):
            self.judge.sample(ratio, begins + 1 + number)
        self.judge.look(begins + WINDOW_SECONDS)
        return self.judge.match

    def minutes(self, *medians: float) -> list[Match]:
        return [self.minute(ratio, ratio, ratio) for ratio in medians]


def test_the_first_minute_within_the_band_is_a_match() -> None:
    told = Minutes()
    assert told.judge.match is Match.UNVERIFIED
    assert told.minute(0.81, 1.19, 5.0) is Match.MATCH
    assert told.judge.ratio == 1.19


@pytest.mark.parametrize("off", [SLOW, FAST])
def test_five_minutes_off_are_a_mismatch_and_four_are_none(off: float) -> None:
    told = Minutes()
    told.minutes(WELL)
    assert told.minutes(off, off, off, off) == [Match.MATCH] * 4
    assert told.minutes(WELL, off, off, off, off) == [Match.MATCH] * 5
    assert told.minutes(off) == [Match.MISMATCH]


def test_a_replica_that_is_off_from_the_start_is_unverified_until_it_is_a_mismatch() -> None:
    told = Minutes()
    assert told.minutes(SLOW, SLOW, SLOW, SLOW) == [Match.UNVERIFIED] * 4
    assert told.minutes(SLOW) == [Match.MISMATCH]


def test_now_too_slow_and_now_too_fast_is_no_five_minutes() -> None:
    told = Minutes()
    assert told.minutes(*[SLOW, SLOW, FAST, FAST, SLOW] * 3)[-1] is Match.UNVERIFIED


def test_the_way_back_takes_five_minutes_too() -> None:
    told = Minutes()
    told.minutes(SLOW, SLOW, SLOW, SLOW, SLOW)
    assert told.minutes(WELL, WELL, WELL, WELL) == [Match.MISMATCH] * 4
    assert told.minutes(WELL) == [Match.MATCH]


def test_a_minute_with_too_few_samples_tells_nothing() -> None:
    told = Minutes()
    told.minutes(SLOW, SLOW, SLOW, SLOW)
    assert told.minute(WELL, WELL) is Match.UNVERIFIED
    assert told.minute() is Match.UNVERIFIED
    assert told.minutes(SLOW) == [Match.MISMATCH]


def test_the_twentieth_part_more_than_a_fifth_is_off_and_a_fifth_is_not() -> None:
    told = Minutes()
    assert told.minutes(*[1 + OFF_RATIO] * 6)[-1] is Match.MATCH


def test_a_flood_of_samples_is_bounded() -> None:
    told = Minutes()
    for _ in range(MOST_SAMPLES + 50):
        told.judge.sample(WELL, 1.0)
    assert len(told.judge._ratios) == MOST_SAMPLES


@settings(max_examples=60)
@given(st.lists(st.sampled_from([WELL, SLOW, FAST, None]), max_size=40))
def test_no_mismatch_comes_without_five_telling_minutes_in_a_row(medians: list[float | None]) -> None:
    told = Minutes()
    telling: list[float] = []
    before = told.judge.match
    for ratio in medians:
        match = told.minute(*([] if ratio is None else [ratio] * 3))
        telling += [] if ratio is None else [ratio]
        if match is not before:
            last = telling[-WINDOWS_IN_A_ROW:]
            assert match is not Match.UNVERIFIED
            if match is Match.MISMATCH:
                assert last in ([SLOW] * WINDOWS_IN_A_ROW, [FAST] * WINDOWS_IN_A_ROW)
            elif before is Match.MISMATCH:
                assert last == [WELL] * WINDOWS_IN_A_ROW
        before = match
