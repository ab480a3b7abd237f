"""The tables of a review: a dash for what is not known, and none without rows."""

from fakes.reviews import FOUND, NOTHING
from llmshed.rendering.review_tables import review_tables
from llmshed.review.figures import Review


def cells(found: Review) -> dict[str, tuple[tuple[str, ...], ...]]:
    return {table.caption: table.rows for table in review_tables(found)}


def test_tables_have_a_dash_for_what_is_not_known() -> None:
    told = cells(FOUND)
    assert told["Refused, by reason"] == (("interactive, queue_full", "100", "10.0 %", "50,000"),)
    assert told["Served, by lane"] == (("interactive", "900", "95.0 %", "-", "-", "-", "-"),)
    assert told["Pools: how they were used"] == (("<main>", "interactive alone", "50.0 %", "-", "25.0 %", "-", "64"),)


def test_a_table_without_rows_is_left_out() -> None:
    assert cells(NOTHING) == {}
    assert "Would have been refused (observe mode)" not in cells(FOUND)


def test_tokens_are_called_an_estimate() -> None:
    (refused,) = (table for table in review_tables(FOUND) if table.caption == "Refused, by reason")
    assert refused.columns[-1] == "tokens (estimate)"
    assert "estimate" in refused.note
