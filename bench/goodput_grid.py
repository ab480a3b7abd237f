"""The grid of `bench/goodput.py`: where 1x lies, which cells there are, and how they are run and remembered."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from json import dumps, loads
from math import sqrt
from multiprocessing import Pool
from pathlib import Path

from goodput_cases import SCALES, STEP_TIME_ERRORS, Case, Cell, sliced
from goodput_runs import Figures, key_of, kv_tokens, run_cell

from llmshed.whatif.gates.levels import RESERVES, WORTHS
from llmshed.whatif.gates.table import OURS
from llmshed.workload.ceilings import CeilingRule

Results = Mapping[Cell, Figures]
Measure = Callable[[Sequence[Cell]], Results]

Goodput = tuple[float, float]
"""Good requests and their tokens, a second."""

ORACLE = "oracle"
OTHERS = ("ours", "none", "request_limit", "token_bucket", "thresholds", "smallest_first")
COARSE_RATES = tuple(0.25 * 2 ** (step / 2) for step in range(9))
"""Rates at which the oracle is tried first: 0.25x to 4x."""
HALVINGS = 2
"""How often the interval that holds 1x is halved, on a logarithmic scale: to steps of 9 %."""
NEAR_GREATEST = 0.99
_SHARES = (1.0, 1 / sqrt(2), 1 / 2)
"""Tokens at which the oracle is tried, as shares of the KV cache; at less it is worse everywhere."""
_FIRST_SORT = (RESERVES[0], WORTHS[0])
_OTHER_SORTS = ((0.0, 0.0), (0.4, 0.5), (0.4, 0.7))
"""Reserves and least worths at which it is tried with the better of these."""


class Remembered:
    """Figures of finished cells in a file, one a line, so that a run that was cut short goes on where it was.

    Cells are known by their inputs and by the code that is measured, so that none is taken for one of other code.
    """

    def __init__(self, path: Path, processes: int) -> None:
        """Read what the file holds; it is made when there is none."""
        self._path = path
        self._processes = processes
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        lines = (loads(line) for line in path.read_text("utf-8").splitlines())
        self._known: dict[str, Figures] = {line["key"]: line["figures"] for line in lines}

    def measure(self, cells: Sequence[Cell]) -> dict[Cell, Figures]:
        """Return the figures of all cells, running those that are not known."""
        keys = {cell: key_of(cell) for cell in cells}
        missing = [cell for cell, key in keys.items() if key not in self._known]
        if missing:
            # The longest first, so that no process is left alone with one at the end.
            missing.sort(key=lambda cell: cell.rate * len(sliced(cell.case)), reverse=True)
            with Pool(self._processes, initializer=os.nice, initargs=(5,)) as pool, self._path.open("a") as file:
                for done, (cell, figures) in enumerate(pool.imap_unordered(_with_cell, missing), 1):
                    self._known[keys[cell]] = figures
                    line = {"key": keys[cell], "cell": asdict(cell), "figures": figures}
                    file.write(dumps(line) + "\n")
                    file.flush()
                    print(f"\r{done} of {len(missing)} cells", end="" if done < len(missing) else "\n", flush=True)
        return {cell: self._known[key] for cell, key in keys.items()}


def _with_cell(cell: Cell) -> tuple[Cell, Figures]:
    return cell, run_cell(cell)


def oracle_cells(case: Case, rate: float) -> list[Cell]:
    """Return the oracle with each number of tokens that is tried, at a factor on the slice's own rate."""
    whole = kv_tokens(case)
    return [_oracle(case, rate, int(whole * share), _FIRST_SORT) for share in _SHARES]


def sorted_oracles(case: Case, rate: float, results: Results) -> list[Cell]:
    """Return the oracle with the best of those numbers of tokens, at each reserve and least worth besides the first."""
    best = _best(oracle_cells(case, rate), results)
    return [replace(best, reserve_ratio=reserve, worth_ratio=worth) for reserve, worth in _OTHER_SORTS]


def next_rates(points: Mapping[float, Goodput]) -> tuple[float, ...]:
    """Return the rates that are to be tried next, to know where goodput comes near its greatest; empty when known.

    Args:
        points: goodput by rate, as far as it was tried.
    """
    missing = tuple(rate for rate in COARSE_RATES if rate not in points)
    if missing:
        return missing
    if len(points) >= len(COARSE_RATES) + HALVINGS:
        return ()
    high = saturation(points)
    low = max((rate for rate in points if rate < high), default=None)
    return () if low is None else (sqrt(low * high),)


def saturation(points: Mapping[float, Goodput]) -> float:
    """Return the lowest rate whose goodput, in requests or in tokens, is within 1 % of the greatest of all.

    Beyond what replicas can serve an oracle goes on raising one of the two, by choosing shorter requests or longer
    ones; so that they are full is told by the one that rises no more.
    """
    most_requests, most_tokens = (NEAR_GREATEST * max(column) for column in zip(*points.values(), strict=True))
    return min(
        rate for rate, (requests, tokens) in points.items() if requests >= most_requests or tokens >= most_tokens
    )


def find_1x(cases: Iterable[Case], measure: Measure) -> dict[Case, float]:
    """Return 1x of each case, as a factor on its slice's own rate.

    It is the lowest rate at which the oracle, at its best level, gives 99 % of the most good requests a second, or of
    their tokens, that it gives anywhere between 0.25 and 4 times the slice's own rate, times the case's overlay.
    """
    points: dict[Case, dict[float, Goodput]] = {case: {} for case in cases}
    while wanted := {case: rates for case, known in points.items() if (rates := next_rates(known))}:
        tried = [(case, rate) for case, rates in wanted.items() for rate in rates]
        results = _with_all_oracles([(case, rate * case.overlay) for case, rate in tried], measure)
        for case, rate in tried:
            cells = _oracles(case, rate * case.overlay, results)
            points[case][rate] = (
                max(results[cell]["good_requests_per_second"] for cell in cells),
                max(results[cell]["good_tokens_per_second"] for cell in cells),
            )
    return {case: case.overlay * saturation(known) for case, known in points.items()}


def is_doubted(case: Case) -> bool:
    """Say whether a case is run with clients that retry and with wrong step times too: conversations under `pow2`."""
    return case.trace == "azure_conv" and case.ceiling is CeilingRule.POW2


def grid_cells(case: Case, first: float, tokens: int) -> list[Cell]:
    """Return the runs of a case at every scale of its 1x, `first`, with the oracle at the tokens best there."""
    cells: list[Cell] = []
    for scale in SCALES:
        rate = scale * first
        cells += cells_beside_the_oracle(case, rate)
        cells += [_oracle(case, rate, tokens, sort) for sort in (_FIRST_SORT, *_OTHER_SORTS)]
    return cells


def cells_beside_the_oracle(case: Case, rate: float) -> list[Cell]:
    """Return the runs of all others: ours with clients that retry too, where ceilings are near the true lengths."""
    cells = [Cell(case, policy, rate) for policy in OTHERS]
    if case.ceiling is CeilingRule.POW2:
        cells.append(Cell(case, OURS, rate, clients="sdk"))
    if is_doubted(case):
        cells.append(Cell(case, "none", rate, clients="sdk"))
        cells += [Cell(case, OURS, rate, step_time_error=error) for error in STEP_TIME_ERRORS]
    return cells


def measured_cells(first: Mapping[Case, float], measure: Measure) -> Results:
    """Return the figures of all cells of the grid, given 1x of each case."""
    results = _with_all_oracles(tuple(first.items()), measure)
    tokens = {case: best_oracle_of(case, rate, results).level_tokens or 0 for case, rate in first.items()}
    grid = measure([cell for case, rate in first.items() for cell in grid_cells(case, rate, tokens[case])])
    results = {**results, **grid}
    rates = [(case, scale * rate) for case, rate in first.items() for scale in SCALES]
    return {**results, **measure([cell for case, rate in rates for cell in misled_oracles(case, rate, results)])}


def misled_oracles(case: Case, rate: float, results: Results) -> list[Cell]:
    """Return the oracle with wrong step times at the level that is best with the right ones, in cases that have it."""
    if not is_doubted(case):
        return []
    best = best_oracle_of(case, rate, results)
    return [replace(best, step_time_error=error) for error in STEP_TIME_ERRORS]


def best_oracle_of(case: Case, rate: float, results: Results) -> Cell:
    """Return the oracle with the most good tokens a second at a rate, of those that know the step times."""
    return _best(_oracles(case, rate, results), results)


def _oracles(case: Case, rate: float, results: Results) -> list[Cell]:
    return [
        cell
        for cell in results
        if (cell.policy, cell.rate, cell.step_time_error) == (ORACLE, rate, 0.0) and cell.case == case
    ]


def _oracle(case: Case, rate: float, tokens: int, sort: tuple[float, float]) -> Cell:
    reserve, worth = sort
    return Cell(case, ORACLE, rate, level_tokens=tokens, reserve_ratio=reserve, worth_ratio=worth)


def _with_all_oracles(rates: Sequence[tuple[Case, float]], measure: Measure) -> Results:
    """Return the figures of the oracle at every level that is tried, for some cases and rates."""
    results = measure([cell for case, rate in rates for cell in oracle_cells(case, rate)])
    return {**results, **measure([cell for case, rate in rates for cell in sorted_oracles(case, rate, results)])}


def _best(cells: Iterable[Cell], results: Results) -> Cell:
    return max(cells, key=lambda cell: float(results[cell]["good_tokens_per_second"]))
