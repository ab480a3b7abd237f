"""How early re-entries lengthen the way back."""

from fakes.ladders import small
from llmshed.ladder.damping import Damping

LADDER = small(
    'action = "stop_bulk"; exit = { windows = 3 }',
    windows="reentry_windows = 4\nmost_exit_windows = 10",
)
RUNG, WINDOWS = LADDER.rungs[0], LADDER.windows


def ended(damping: Damping, windows: int, *, on_ground: bool) -> None:
    for _ in range(windows):
        damping.window_ended(WINDOWS, on_ground=on_ground)


def left_and_back(damping: Damping, after: int) -> int:
    """Step back, climb again so many windows later, and return what the next step back takes."""
    damping.went_back()
    ended(damping, after, on_ground=True)
    damping.climbed(WINDOWS)
    return damping.exit_windows(RUNG, WINDOWS)


def test_each_early_reentry_doubles_up_to_the_most() -> None:
    damping = Damping()
    assert damping.exit_windows(RUNG, WINDOWS) == 3
    assert [left_and_back(damping, 4) for _ in range(3)] == [6, 10, 10]


def test_one_window_later_is_not_early() -> None:
    assert left_and_back(Damping(), 5) == 3


def test_a_climb_of_several_rungs_is_one_reentry() -> None:
    damping = Damping()
    left_and_back(damping, 1)
    damping.climbed(WINDOWS)
    assert damping.exit_windows(RUNG, WINDOWS) == 6


def test_it_is_forgotten_on_the_ground_and_nowhere_else() -> None:
    damping = Damping()
    left_and_back(damping, 1)
    damping.went_back()  # to a rung: one rung back from the second
    ended(damping, 5, on_ground=False)
    assert damping.exit_windows(RUNG, WINDOWS) == 6
    damping.went_back()  # to the ground
    ended(damping, 4, on_ground=True)
    assert damping.exit_windows(RUNG, WINDOWS) == 6
    ended(damping, 1, on_ground=True)
    assert damping.exit_windows(RUNG, WINDOWS) == 3


def test_a_ladder_that_is_reentered_forever_takes_the_most_and_no_more() -> None:
    damping = Damping()
    assert {left_and_back(damping, 1) for _ in range(3000)} == {6, 10}
