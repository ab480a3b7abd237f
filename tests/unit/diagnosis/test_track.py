"""Points on a grid: gaps stay gaps, and cuts fall where they are told to."""

import math

from llmshed.diagnosis.track import Track


def values(track: Track) -> list[float | None]:
    return [None if math.isnan(value) else value for value in track.values]


def test_points_fall_on_their_steps_and_what_is_no_number_is_a_gap() -> None:
    track = Track.of(100, 160, 15, [(100, 1), (115.2, 2), (130, math.inf), (160, 4), (175, 9), (85, 9)])
    assert values(track) == [1, 2, None, None, 4]
    assert [track.at(place) for place in (0, 4)] == [100, 160]
    assert list(track.known) == [1, 2, 4]
    assert track.middle == 2
    assert track.last == 4


def test_nothing_known_has_no_middle() -> None:
    empty = Track.of(0, 30, 15, [])
    assert not empty.known
    assert empty.middle is None
    assert empty.last is None


def test_a_part_begins_at_its_time_and_ends_before_the_other() -> None:
    track = Track(100, 10, (0, 1, 2, 3, 4))
    part = track.between(110, 130)
    assert (part.start, values(part)) == (110, [1, 2])
    assert values(track.between(105, 125)) == [1, 2]
    assert values(track.between(0, 1000)) == [0, 1, 2, 3, 4]
    assert values(track.between(400, 500)) == []


def test_values_can_be_left_out_and_changed() -> None:
    track = Track(0, 1, (1, math.nan, 3))
    assert values(track.where([True, True, False])) == [1, None, None]
    assert values(track.with_values(lambda value: 100 * value)) == [100, None, 300]
