"""Goodput of every policy at 1x, 2x, 5x and 10x: `python bench/goodput.py --full`, or a reduced grid without it.

1x is found for each trace, replica and ceiling rule as the lowest rate at which the order-keeping oracle comes within
1 % of its greatest goodput, in requests or in tokens. All runs are on a virtual clock and deterministic: equal inputs
give equal figures. The full grid takes two processes about half an hour and remembers finished cells in
`bench/results`, so that it may be cut short; it writes `bench/data/goodput.csv` and the drawings of `docs/`, and prints
the tables of docs/performance.md. The reduced one takes a minute or two, for a slice of one trace before one kind of
replica, and writes nothing. `--case azure_conv/llama-3-8b-a10g/pow2` runs ours in one case of the whole grid, in less
than a minute, and prints it beside what was kept of the other policies. `--again ours` runs that policy anew in all.
"""

import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from goodput_case import case_named, case_report
from goodput_cases import CASES, ROOT, Case, data_folder
from goodput_grid import Remembered, find_1x, measured_cells
from goodput_rows import Row, from_csv, measured_again, rows_of, to_csv
from goodput_tables import drawing, tables

from llmshed.whatif.gates.table import OURS

PROCESSES = 2
REMEMBERED = ROOT / "bench" / "results" / "goodput.jsonl"
ROWS = ROOT / "bench" / "data" / "goodput.csv"
DRAWINGS = {
    "goodput-conv-a10g": ("azure_conv", "llama-3-8b-a10g", "pow2"),
    "goodput-conv-h100": ("azure_conv", "llama-3-8b-h100", "pow2"),
    "goodput-code-a10g": ("azure_code", "llama-3-8b-a10g", "pow2"),
}
"""Curves of `docs/`, by the name of the file."""
QUICK = replace(CASES[0], seconds=60.0)


def measured(cases: Sequence[Case], remembered: Remembered) -> list[Row]:
    """Return the rows of some cases, running what is not remembered."""
    first = find_1x(cases, remembered.measure)
    return rows_of(first, measured_cells(first, remembered.measure))


def draw(rows: Sequence[Row]) -> None:
    """Write the drawings."""
    for name, place in DRAWINGS.items():
        (ROOT / "docs" / f"{name}.svg").write_text(drawing(rows, place, name), encoding="utf-8")


def show(rows: Sequence[Row]) -> None:
    """Print the tables."""
    for name, table in tables(rows).items():
        print(f"\n{name}\n{table}")


def main(arguments: Sequence[str] = ()) -> None:
    """Run the reduced grid, the whole one, or one case; `--drawn` draws and prints anew what was kept."""
    parser = ArgumentParser(description="Goodput of every policy at 1x, 2x, 5x and 10x.")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--full", action="store_true", help="run the whole grid")
    chosen.add_argument(
        "--again", metavar="POLICIES", help="run some policies anew, with commas between; keep the rest"
    )
    chosen.add_argument("--drawn", action="store_true", help="draw and print what was kept of it")
    chosen.add_argument("--case", metavar="TRACE/REPLICA/CEILINGS", help="run ours in one case")
    parser.add_argument(
        "--policies", default=f"{OURS},thresholds,oracle", help="what --case shows, with commas between"
    )
    parser.add_argument("--clients", default="none", help="client models of --case, with commas between")
    asked = parser.parse_args(arguments)
    if asked.drawn:
        rows = from_csv(ROWS.read_text("utf-8"))
    elif not (data_folder() / "traces").is_dir():
        print(f"\ngoodput: not measured, since there are no traces in {data_folder()}; TEST_DATA names another folder")
        return
    elif asked.again is not None:
        kept = from_csv(ROWS.read_text("utf-8"))
        rows = measured_again(kept, asked.again.split(","), Remembered(REMEMBERED, PROCESSES).measure)
        ROWS.write_text(to_csv(rows), encoding="utf-8")
    elif asked.full:
        rows = measured(CASES, Remembered(REMEMBERED, PROCESSES))
        ROWS.write_text(to_csv(rows), encoding="utf-8")
    else:
        with tempfile.TemporaryDirectory() as folder:
            forgotten = Remembered(Path(folder) / "cells.jsonl", PROCESSES)
            if asked.case is None:
                show(measured([QUICK], forgotten))
            else:
                kept = from_csv(ROWS.read_text("utf-8"))
                policies, clients = asked.policies.split(","), asked.clients.split(",")
                print(case_report(case_named(asked.case), policies, clients, kept, forgotten.measure))
        return
    draw(rows)
    show(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
