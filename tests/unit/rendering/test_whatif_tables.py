from collections.abc import Iterable

from fakes.whatif_runs import part, report, run, unserved
from llmshed.rendering.page import Table
from llmshed.rendering.whatif_tables import (
    cell_table,
    difference_table,
    part_tables,
    replica_table,
    scale_tables,
    scales_of,
)
from llmshed.whatif.compare import difference
from llmshed.whatif.report import LedgerTruth

RUNS = (run(), run("none"), run(scale=2.0), run("none", 2.0, part(300, {"engine_overloaded": 40, "engine_failed": 2})))


def rectangular(tables: Iterable[Table]) -> bool:
    return all(len(row) == len(table.columns) for table in tables for row in table.rows)


def test_each_scale_has_a_row_for_each_of_its_runs() -> None:
    goodput, times, requests, refusals, *rest = scale_tables(RUNS, 2.0)
    assert [row[0] for row in goodput.rows] == ["ours", "none"]
    assert dict(zip(goodput.columns, goodput.rows[1], strict=True)) == {
        "": "none",
        "good/s": "3.00",
        "good tok/s": "750",
        "attained": "30.0 %",
        "of offered": "30.0 %",
        "done/s": "3.00",
        "out tok/s": "150",
    }
    assert dict(zip(times.columns, times.rows[0], strict=True))["TTFT p95"] == "0.600"
    assert dict(zip(requests.columns, requests.rows[1], strict=True))["gave up"] == "700"
    assert refusals.rows[1:] == (("none: engine_failed", "2"), ("none: engine_overloaded", "40"))
    assert len(rest) == 3
    assert rectangular(scale_tables(RUNS, 2.0))


def test_scales_stand_in_their_order_once_each() -> None:
    assert scales_of(RUNS) == (1.0, 2.0)


def test_a_run_that_refused_nothing_says_so() -> None:
    refusals = scale_tables((run(total=part(1000, {})),), 1.0)[3]
    assert refusals.rows == (("ours: none", "0"),)


def test_runs_of_two_configurations_are_told_apart() -> None:
    goodput = scale_tables((run(), run(configuration="b.toml")), 1.0)[0]
    assert [row[0] for row in goodput.rows] == ["ours, a.toml", "ours, b.toml"]


def test_every_table_of_a_terminal_of_80_columns_fits_it() -> None:
    runs = (run("smallest_first"), run("request_limit", total=part(900, refusals={"token_budget_exhausted": 100})))
    for table in (*scale_tables(runs, 1.0), *part_tables(runs, 1.0), replica_table(runs[0], runs)):
        widths = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
        assert sum(widths) + 2 * (len(widths) - 1) <= 80, table.caption


def test_parts_in_which_nobody_arrived_are_left_out() -> None:
    empty = part(0, {}, arrived=0)
    one = run(total=part(), quartiles=(part(), empty, empty, part()), lanes={"interactive": part(), "bulk": part()})
    (table,) = part_tables((one, run(scale=2.0)), 1.0)
    assert [row[0] for row in table.rows] == ["all", "interactive", "bulk", "quartile 1", "quartile 4"]
    assert "100, 1,000, 4,000" in table.note


def test_classes_are_told_where_there_are_several() -> None:
    one = run(classes={"high": part(), "low": part()})
    (table,) = part_tables((one,), 1.0)
    assert {"class high", "class low"} <= {row[0] for row in table.rows}


def test_what_was_not_measured_is_a_dash() -> None:
    (table,) = part_tables((run(total=unserved()),), 1.0)
    assert table.rows[0] == ("all", "1,000", "1,000", "-", "0", "-", "-", "-")
    assert rectangular(scale_tables((run(total=unserved(), replicas=()),), 1.0))


def test_cells_and_replicas_have_a_row_each() -> None:
    one = run()
    cells = cell_table(one, (one,))
    assert [row[0] for row in cells.rows] == ["interactive, normal, Q1"]
    assert dict(zip(cells.columns, cells.rows[0], strict=True))["TTFT p99"] == "1.00"
    assert replica_table(one, (one,)).rows[1] == (
        "main-2", "400", "0", "60.0 %", "20.0 %", "40.0 %", "18.5", "0.500", "3",
    )  # fmt: skip


def test_broken_invariants_are_told_in_words() -> None:
    ledger = LedgerTruth(20, 1, 0, 0, 0, 1.0, 1.0, ("A sentence.",), 7)
    table = scale_tables((run(ledger=ledger),), 1.0)[-1]
    assert (table.rows[0][-1], table.note) == ("7", "A sentence.")


def test_a_difference_has_a_row_for_each_measure() -> None:
    table = difference_table(difference(run(total=part(800)), run(configuration="b.toml")))
    assert table.columns == ("", "a.toml", "b.toml", "change")
    assert ("good tokens/s", "2,000", "2,250", "+12.5 %") in table.rows
    assert ("attainment", "80.0 %", "90.0 %", "+10.0 points") in table.rows


def test_the_report_made_by_hand_prints_as_json() -> None:
    assert report().to_dict()["total"]["ttft_seconds"]["p50"] == 0.2
