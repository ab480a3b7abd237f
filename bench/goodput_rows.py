"""The rows that `bench/goodput.py` keeps: one for each case, policy, client model, step-time error and scale."""

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

from goodput_cases import CASES, SCALES, Case, Cell
from goodput_grid import Measure, Results, best_oracle_of, cells_beside_the_oracle, is_doubted, misled_oracles
from goodput_runs import Figures

_WHOLE = frozenset({"replicas", "hurry"})
_WORDS = frozenset({"trace", "replica", "ceiling", "policy", "clients"})


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one run; rates are a second, `q1` holds the shortest prompts.

    Args:
        trace: name of the trace.
        replica: name of the replica file.
        replicas: how many there were.
        begin_seconds: where the slice of the trace begins.
        seconds: how long it is.
        hurry: how many times as fast as it came it was played.
        ceiling: rule of the output ceilings.
        policy: name of the policy.
        clients: what refused clients do.
        step_time_error: by how much steps were longer than everybody but the engines took them to be.
        scale: rate as a multiple of 1x.
        rate: the same as a factor on the rate at which the slice came.
        offered_requests: requests that arrived.
        feasible_share: share of them that an idle replica serves within the objectives.
        good_requests: requests that met theirs.
        good_tokens: their input and output tokens.
        output_tokens: output tokens of all, good or not, within the slice's time.
        attainment: share of the feasible requests that were good.
        q1_good_tokens: good tokens of prompts in the first quartile.
        q2_good_tokens: of the second.
        q3_good_tokens: of the third.
        q4_good_tokens: of the fourth.
        ttft_p95_seconds: of those that were served; empty when nobody was.
        tpot_p95_seconds: likewise.
    """

    trace: str
    replica: str
    replicas: int
    begin_seconds: float
    seconds: float
    hurry: int
    ceiling: str
    policy: str
    clients: str
    step_time_error: float
    scale: float
    rate: float
    offered_requests: float
    feasible_share: float
    good_requests: float
    good_tokens: float
    output_tokens: float
    attainment: float
    q1_good_tokens: float
    q2_good_tokens: float
    q3_good_tokens: float
    q4_good_tokens: float
    ttft_p95_seconds: float | None
    tpot_p95_seconds: float | None

    @property
    def place(self) -> tuple[str, str, str]:
        """Return trace, replica and ceiling rule."""
        return self.trace, self.replica, self.ceiling

    @property
    def quartiles(self) -> tuple[float, float, float, float]:
        """Return the good tokens of each input quartile."""
        return self.q1_good_tokens, self.q2_good_tokens, self.q3_good_tokens, self.q4_good_tokens


def rows_of(first: Mapping[Case, float], results: Results) -> list[Row]:
    """Return the rows of all cases, given 1x of each; the oracle's is that of its best level."""
    return [
        _row(cell, scale, results[cell])
        for case, rate in first.items()
        for scale in SCALES
        for cell in _kept(case, scale * rate, results)
    ]


def measured_again(rows: Sequence[Row], policies: Collection[str], measure: Measure) -> list[Row]:
    """Return all rows, those of some policies measured anew at the rates at which they were; none is the oracle."""
    cases = {(case.trace, case.replica, case.ceiling.value): case for case in CASES}
    rates = {(row.place, row.scale): row.rate for row in rows}
    cells = {
        (place, scale): [cell for cell in cells_beside_the_oracle(cases[place], rate) if cell.policy in policies]
        for (place, scale), rate in rates.items()
    }
    results = measure(tuple(cell for some in cells.values() for cell in some))
    again: list[Row] = []
    for place, scale in rates:
        again += [_row(cell, scale, results[cell]) for cell in cells[place, scale]]
        again += [row for row in rows if (row.place, row.scale) == (place, scale) and row.policy not in policies]
    return again


def to_csv(rows: Iterable[Row]) -> str:
    """Return rows as text with a head line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(Row))
    writer.writerows(["" if value is None else value for value in astuple(row)] for row in rows)
    return text.getvalue()


def from_csv(text: str) -> list[Row]:
    """Return the rows of `to_csv`."""
    return [
        Row(**{name: _value(name, value) for name, value in line.items()}) for line in csv.DictReader(text.splitlines())
    ]


def _value(name: str, text: str) -> Any:
    if name in _WORDS:
        return text
    if name in _WHOLE:
        return int(text)
    return float(text) if text else None


def _kept(case: Case, rate: float, results: Results) -> Iterator[Cell]:
    yield from cells_beside_the_oracle(case, rate)
    yield best_oracle_of(case, rate, results)
    if is_doubted(case):
        yield from misled_oracles(case, rate, results)


def _row(cell: Cell, scale: float, figures: Figures) -> Row:
    case = cell.case
    # Rates refer to the time until the last arrival, and so does this one.
    seconds = figures["good"] / figures["good_requests_per_second"] if figures["good"] else case.offered_seconds
    q1, q2, q3, q4 = (round(tokens, 1) for tokens in figures["quartile_good_tokens_per_second"])
    ttft, tpot = figures["ttft_p95_seconds"], figures["tpot_p95_seconds"]
    return Row(
        trace=case.trace,
        replica=case.replica,
        replicas=case.replicas,
        begin_seconds=case.begin_seconds,
        seconds=case.seconds,
        hurry=case.hurry,
        ceiling=case.ceiling.value,
        policy=cell.policy,
        clients=cell.clients,
        step_time_error=cell.step_time_error,
        scale=scale,
        rate=cell.rate,
        offered_requests=round(figures["requests"] / seconds, 3),
        feasible_share=round(figures["feasible"] / figures["requests"], 4),
        good_requests=round(figures["good_requests_per_second"], 3),
        good_tokens=round(figures["good_tokens_per_second"], 1),
        output_tokens=round(figures["output_tokens_per_second"], 1),
        attainment=round(figures["attainment"] or 0.0, 4),
        q1_good_tokens=q1,
        q2_good_tokens=q2,
        q3_good_tokens=q3,
        q4_good_tokens=q4,
        ttft_p95_seconds=None if ttft is None else round(ttft, 3),
        tpot_p95_seconds=None if tpot is None else round(tpot, 4),
    )
