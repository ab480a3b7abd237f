"""Goodput of every policy at 1x, 2x, 5x and 10x: `python bench/goodput.py --full`, or a reduced grid without it.

1x is found for each trace, replica and ceiling rule as the lowest rate at which the order-keeping oracle comes within
1 % of its greatest goodput, in requests or in tokens. All runs are on a virtual clock and deterministic: equal inputs
give equal figures. The full grid takes two processes about half an hour and remembers finished cells in
`bench/results`, so that it may be cut short; it writes `bench/data/goodput.csv` and the drawings of `docs/`, and prints
the tables of docs/performance.md. The reduced one takes a minute or two, for a slice of one trace before one kind of
replica, and writes nothing.
"""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from goodput_cases import CASES, ROOT, Case, data_folder
from goodput_grid import Remembered, find_1x, measured_cells
from goodput_rows import Row, from_csv, rows_of, to_csv
from goodput_tables import drawing, tables

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
    """Run the reduced grid, or with `--full` the whole one; `--drawn` draws and prints anew what was kept of it."""
    if list(arguments) not in ([], ["--full"], ["--drawn"]):
        sys.exit("usage: python bench/goodput.py [--full | --drawn]")
    if "--drawn" in arguments:
        rows = from_csv(ROWS.read_text("utf-8"))
    elif not (data_folder() / "traces").is_dir():
        print(f"\ngoodput: not measured, since there are no traces in {data_folder()}; TEST_DATA names another folder")
        return
    elif "--full" in arguments:
        rows = measured(CASES, Remembered(REMEMBERED, PROCESSES))
        ROWS.write_text(to_csv(rows), encoding="utf-8")
    else:
        with tempfile.TemporaryDirectory() as folder:
            show(measured([QUICK], Remembered(Path(folder) / "cells.jsonl", PROCESSES)))
        return
    draw(rows)
    show(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
