"""The longest stretch in which work waited and none of it began."""

from llmshed.whatif.gaps import Gap


def test_nobody_starves_where_nobody_waits() -> None:
    gap = Gap()
    assert gap.longest_seconds(1000.0) == 0.0
    gap.begin_wait(1000.0)
    gap.start(1001.0)
    assert gap.longest_seconds(5000.0) == 1.0


def test_a_start_of_one_ends_the_stretch_for_all() -> None:
    gap = Gap()
    gap.begin_wait(0.0)
    gap.begin_wait(1.0)
    gap.start(4.0)
    assert gap.longest_seconds(4.0) == 4.0
    gap.start(7.0)
    assert gap.longest_seconds(100.0) == 4.0


def test_a_stretch_that_lasts_counts_up_to_now() -> None:
    gap = Gap()
    gap.begin_wait(10.0)
    assert gap.longest_seconds(35.0) == 25.0


def test_the_refusal_of_the_last_that_waits_ends_the_stretch() -> None:
    gap = Gap()
    gap.begin_wait(0.0)
    gap.begin_wait(1.0)
    gap.end_wait(3.0)  # one still waits, so nothing has begun for longer
    gap.end_wait(9.0)
    assert gap.longest_seconds(50.0) == 9.0
    gap.begin_wait(50.0)
    gap.end_wait(51.0)
    assert gap.longest_seconds(60.0) == 9.0
