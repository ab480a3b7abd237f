"""A hindcast as people read it."""

from llmshed.admission.request import Lane
from llmshed.rendering.hindcast_table import hindcast_table, verdict
from llmshed.whatif.hindcast import Hindcast, hindcast
from llmshed.whatif.logged_figures import LaneFigures, LoggedFigures

LOG = LaneFigures(1000, 0.2, 800, 1.5, 240.0)


def compared(log: LaneFigures, run: LaneFigures, draws: int = 1) -> Hindcast:
    return hindcast(LoggedFigures(60.0, {Lane.BULK: log}, {}, frozenset()), {Lane.BULK: run}, draws)


def test_each_measure_has_a_row_with_both_sides_and_their_difference() -> None:
    table = hindcast_table(compared(LOG, LaneFigures(1000, 0.21, 790, 1.62, 228.0), draws=10))
    assert table.columns == ("", "log", "mean of 10 runs", "off by")
    assert table.rows == (
        ("bulk: refused", "20.0 %", "21.0 %", "5.0 %"),
        ("bulk: TTFT p95", "1.50 s", "1.62 s", "8.0 %"),
        ("bulk: output tokens/s", "240", "228", "5.0 %"),
    )


def test_the_verdict_says_what_is_proposed_and_why_not() -> None:
    close, far = compared(LOG, LOG), compared(LOG, LaneFigures(1000, 0.2, 800, 2.1, 240.0))
    assert verdict(close).startswith("The hindcast is off by 0.0 % at most (bulk: refused), within the 15.0 %")
    assert verdict(far).startswith(
        "No proposal is made: the hindcast is off by 40.0 % at most (bulk: TTFT p95), above 15.0 %."
    )
    few = LaneFigures(3, 0.0, 3, 1.0, 1.0)
    assert verdict(compared(few, few)).startswith("No proposal is made: no lane of the log has 50 tries")


def test_what_was_not_measured_is_a_dash() -> None:
    overflow = LaneFigures(100, 1.0, 0, None, 0.0)
    rows = hindcast_table(compared(overflow, overflow)).rows
    assert rows[1] == ("bulk: TTFT p95", "-", "-", "-")
