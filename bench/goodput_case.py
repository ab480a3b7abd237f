"""One case of `bench/goodput.py` in less than a minute: ours is run anew, the others are those of the kept rows.

What is kept stands in `bench/data/goodput.csv`, 1x of the case too, so that a change of the controller is seen at once
beside what the last full grid measured of everybody.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from goodput_cases import CASES, SCALES, Case, Cell
from goodput_grid import ORACLE, Measure
from goodput_rows import Row
from goodput_runs import Figures

from llmshed.whatif.gates.table import OURS

Line = tuple[float, ...]
"""Good tokens a second at each of `SCALES`."""


def case_named(name: str) -> Case:
    """Return the case of a name such as `azure_conv/llama-3-8b-a10g/pow2`.

    Raises:
        ValueError: there is no such case; the text names those that there are.
    """
    named = {f"{case.trace}/{case.replica}/{case.ceiling.value}": case for case in CASES}
    if name not in named:
        raise ValueError(f"{name} is no case; there are {', '.join(named)}")
    return named[name]


def case_report(
    case: Case, policies: Sequence[str], clients: Sequence[str], kept: Sequence[Row], measure: Measure
) -> str:
    """Return tables in Markdown: goodput of every policy with every kind of client, and how ours came to it.

    A policy is left out with clients that it was not run with.
    """
    rows = {
        (row.policy, row.clients, row.scale): row
        for row in kept
        if row.place == (case.trace, case.replica, case.ceiling.value) and row.step_time_error == 0
    }
    cells = {
        (model, scale): Cell(case, OURS, rows[ORACLE, "none", scale].rate, model)
        for model in clients
        for scale in SCALES
    }
    results = measure(tuple(cells.values()))
    ours = {place: results[cell] for place, cell in cells.items()}
    oracle = tuple(rows[ORACLE, "none", scale].good_tokens for scale in SCALES)
    return "".join((*_goodput(policies, clients, rows, ours, oracle), *_how(ours)))


def _goodput(
    policies: Sequence[str],
    clients: Sequence[str],
    rows: Mapping[tuple[str, str, float], Row],
    ours: Mapping[tuple[str, float], Figures],
    oracle: Line,
) -> Iterator[str]:
    scales = " / ".join(f"{scale:g}x" for scale in SCALES)
    yield f"| policy, clients | good tokens/s at {scales} | % of 1x | % of the oracle | % of the oracle at 1x |\n"
    yield "|---|---|---|---|---|\n"
    for policy in policies:
        for model in clients:
            if policy == OURS:
                line = tuple(ours[model, scale]["good_tokens_per_second"] for scale in SCALES)
            elif (policy, model, SCALES[0]) in rows:
                line = tuple(rows[policy, model, scale].good_tokens for scale in SCALES)
            else:
                continue
            flat = tuple(100 * tokens / line[0] for tokens in line)
            there = tuple(100 * tokens / best for tokens, best in zip(line, oracle, strict=True))
            first = tuple(100 * tokens / oracle[0] for tokens in line)
            yield f"| {policy}, {model} | {' | '.join(map(_joined, (line, flat, there, first)))} |\n"


def _how(ours: Mapping[tuple[str, float], Figures]) -> Iterator[str]:
    yield "\n| ours | attainment | tokens by input quartile, % | TTFT p95, s | TPOT p95, s | broken | not served |\n"
    yield "|---|---|---|---|---|---|---|\n"
    for (model, scale), figures in ours.items():
        quartiles = figures["quartile_good_tokens_per_second"]
        shares = [100 * tokens / (4 * fmean(quartiles) or 1.0) for tokens in quartiles]
        refusals = ", ".join(f"{reason} {count}" for reason, count in sorted(figures["refusals"].items()))
        yield (
            f"| {model}, {scale:g}x | {100 * (figures['attainment'] or 0.0):.0f} % | {_joined(shares)} "
            f"| {_seconds(figures['ttft_p95_seconds'])} | {_seconds(figures['tpot_p95_seconds'])} "
            f"| {figures['broken_invariants']} | {refusals} |\n"
        )


def _joined(figures: Sequence[float]) -> str:
    return " / ".join(f"{figure:,.0f}" for figure in figures)


def _seconds(told: float | None) -> str:
    return "-" if told is None else f"{told:.3g}"
