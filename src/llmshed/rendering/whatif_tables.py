"""The runs of `llmshed whatif` as tables: for a terminal and for the page alike."""

from collections.abc import Callable, Iterator, Sequence

from llmshed.rendering.figures import changed, count, factor, measured, number, share
from llmshed.rendering.page import Table
from llmshed.whatif.compare import Difference, Run, mean
from llmshed.whatif.report import Slice

Column = tuple[str, Callable[[Run], str]]


def run_label(run: Run, runs: Sequence[Run]) -> str:
    """Return what a run is called among others: its policy, and its configuration where there are several."""
    several = len({other.configuration for other in runs}) > 1
    return f"{run.policy}, {run.configuration}" if several else run.policy


def scales_of(runs: Sequence[Run]) -> tuple[float, ...]:
    """Return the scales of the runs, in their order."""
    return tuple(dict.fromkeys(run.scale for run in runs))


def scale_tables(runs: Sequence[Run], scale: float) -> tuple[Table, ...]:
    """Return what compares the runs of one scale: a row for each run."""
    chosen = [run for run in runs if run.scale == scale]
    at = factor(scale)
    return (
        _table(f"Goodput at {at}", _GOODPUT, chosen, runs),
        _table(
            f"TTFT and TPOT at {at}, in seconds", _TIMES, chosen, runs, "From arrival at the gateway, waits included."
        ),
        _table(f"Requests at {at}", _REQUESTS, chosen, runs),
        _refusals(f"Refused tries at {at}, by reason", chosen, runs),
        *_ladders(f"Ladders at {at}", chosen, runs),
        _table(f"Starvation (in seconds) and fairness at {at}", _STARVATION, chosen, runs),
        _table(f"Replicas at {at}, in the mean", _REPLICAS, chosen, runs),
        _table(f"The gate's ledger against the engines at {at}", _LEDGER, chosen, runs, _broken(chosen)),
    )


def part_tables(runs: Sequence[Run], scale: float) -> Iterator[Table]:
    """Yield for each run of one scale how each lane, class and input quartile fared."""
    for run in runs:
        if run.scale != scale:
            continue
        rows = tuple((name, *_cells(part, _PART)) for name, part in _parts(run) if part.arrived)
        title = f"{run_label(run, runs)} at {factor(scale)}: lanes, classes, input quartiles"
        edges = ", ".join(f"{edge:,}" for edge in run.report.quartile_edges)
        yield Table(
            title,
            ("", *(column for column, _ in _PART)),
            rows,
            f"Quartiles end at {edges} input tokens; infeasible requests are left out; times in seconds.",
        )


def cell_table(run: Run, runs: Sequence[Run]) -> Table:
    """Return how each combination of lane, class and input quartile of one run fared."""
    rows = tuple(
        (f"{cell.lane}, {cell.priority_class}, Q{cell.quartile}", *_cells(cell.slice, _CELL))
        for cell in run.report.cells
    )
    title = f"{run_label(run, runs)} at {factor(run.scale)}: every combination"
    return Table(title, ("", *(column for column, _ in _CELL)), rows, "Times in seconds.")


def replica_table(run: Run, runs: Sequence[Run]) -> Table:
    """Return what each replica of one run did."""
    rows = tuple(
        (
            one.name,
            count(one.dispatched),
            count(one.refused),
            share(one.busy_share),
            share(one.prefill_share),
            share(one.kv_held_share),
            number(one.mean_sequences),
            number(one.mean_queued),
            count(one.preemptions),
        )
        for one in run.report.replicas
    )
    columns = ("", "sent", "refused", "busy", "prefill", "KV held", "running", "queued", "preempted")
    return Table(f"{run_label(run, runs)} at {factor(run.scale)}: each replica", columns, rows)


def difference_table(difference: Difference) -> Table:
    """Return what changes under the other configuration, a row for each measure."""
    rows = tuple(
        (
            change.measure.words,
            measured(change.measure.unit, change.base),
            measured(change.measure.unit, change.against),
            changed(change),
        )
        for change in difference.changes
    )
    title = f"What changes for {difference.policy} at {factor(difference.scale)}"
    return Table(title, ("", difference.base, difference.against, "change"), rows)


def _table(title: str, columns: Sequence[Column], chosen: Sequence[Run], runs: Sequence[Run], note: str = "") -> Table:
    names = ("", *(name for name, _ in columns))
    rows = tuple((run_label(run, runs), *(cell(run) for _, cell in columns)) for run in chosen)
    return Table(title, names, rows, note)


def _ladders(title: str, chosen: Sequence[Run], runs: Sequence[Run]) -> Iterator[Table]:
    """Yield how each pool of each run stood on its ladder, if any has one."""
    rows: list[tuple[str, ...]] = []
    for run in chosen:
        use = run.report.ladders
        for pool in () if use is None else use.pools:
            stood = ", ".join(
                f"{rung}: {share(seconds / run.report.ended_at_seconds)}"
                for rung, seconds in enumerate(pool.seconds_on_rung)
                if seconds
            )
            rows.append((f"{run_label(run, runs)}, {pool.pool}", pool.ladder, stood, count(pool.climbs)))
        if use is not None:
            rows.append(
                (
                    f"{run_label(run, runs)}, changed answers",
                    "",
                    f"{count(use.degraded)}, {number(use.goodput_degraded_requests_per_second)} good/s",
                    "",
                )
            )
    if rows:
        note = "Share of the run's time with that many rungs in force; goodput above holds changed answers too."
        yield Table(title, ("", "ladder", "rungs in force", "climbs"), tuple(rows), note)


def _of_ttft(name: str) -> Callable[[Slice], str]:
    return lambda part: number(getattr(part.ttft_seconds, name))


def _of_tpot(name: str) -> Callable[[Slice], str]:
    return lambda part: number(getattr(part.tpot_seconds, name))


def _of_total(name: str, cell: Callable[[Slice], str]) -> Column:
    return name, lambda run: cell(run.report.total)


_GOODPUT: tuple[Column, ...] = (
    ("good/s", lambda run: number(run.report.total.goodput_requests_per_second)),
    ("good tok/s", lambda run: number(run.report.total.goodput_tokens_per_second)),
    ("attained", lambda run: share(run.report.total.attainment)),
    ("of offered", lambda run: share(run.report.total.good_tokens_share)),
    ("done/s", lambda run: number(run.report.total.throughput_requests_per_second)),
    ("out tok/s", lambda run: number(run.report.total.throughput_output_tokens_per_second)),
)
_REQUESTS: tuple[Column, ...] = (
    ("arrived", lambda run: count(run.report.total.arrived)),
    ("infeasible", lambda run: count(run.report.total.infeasible)),
    ("finished", lambda run: count(run.report.total.finished)),
    ("failed", lambda run: count(run.report.total.failed)),
    ("gave up", lambda run: count(run.report.total.given_up)),
    ("unended", lambda run: count(run.report.total.unfinished)),
    ("retries", lambda run: count(run.report.total.retries)),
)
_TIMES: tuple[Column, ...] = (
    *(_of_total(f"TTFT {name}", _of_ttft(name)) for name in ("p50", "p90", "p95", "p99")),
    *(_of_total(f"TPOT {name}", _of_tpot(name)) for name in ("p50", "p95")),
)
_STARVATION: tuple[Column, ...] = (
    ("longest wait", lambda run: number(run.report.total.starvation.longest_wait_seconds)),
    ("never served", lambda run: share(run.report.total.starvation.never_served_share)),
    ("longest gap", lambda run: number(run.report.total.starvation.longest_gap_seconds)),
    ("Jain tokens", lambda run: number(run.report.fairness.jain_served_tokens)),
    ("Jain share", lambda run: number(run.report.fairness.jain_served_share)),
)
_REPLICAS: tuple[Column, ...] = (
    ("busy", lambda run: share(mean(one.busy_share for one in run.report.replicas))),
    ("prefill", lambda run: share(mean(one.prefill_share for one in run.report.replicas))),
    ("KV held", lambda run: share(mean(one.kv_held_share for one in run.report.replicas))),
    ("running", lambda run: number(mean(one.mean_sequences for one in run.report.replicas))),
    ("queued", lambda run: number(mean(one.mean_queued for one in run.report.replicas))),
    ("preempted/min", lambda run: number(mean(one.preemptions_per_minute for one in run.report.replicas))),
)
_LEDGER: tuple[Column, ...] = (
    ("looks", lambda run: count(run.report.ledger.looks)),
    ("gate only", lambda run: count(run.report.ledger.only_in_gate)),
    ("engine only", lambda run: count(run.report.ledger.only_in_engine)),
    ("over reserved", lambda run: count(run.report.ledger.looks_above_reserved)),
    ("broken rules", lambda run: count(run.report.ledger.broken_invariants_count)),
)
PartColumn = tuple[str, Callable[[Slice], str]]

_PART: tuple[PartColumn, ...] = (
    ("arrived", lambda part: count(part.arrived)),
    ("left out", lambda part: count(part.infeasible)),
    ("attained", lambda part: share(part.attainment)),
    ("good tok/s", lambda part: number(part.goodput_tokens_per_second)),
    ("TTFT p50", lambda part: number(part.ttft_seconds.p50)),
    ("p95", lambda part: number(part.ttft_seconds.p95)),
    ("TPOT p95", lambda part: number(part.tpot_seconds.p95)),
)
_CELL: tuple[PartColumn, ...] = (
    *_PART[:4],
    ("good req/s", lambda part: number(part.goodput_requests_per_second)),
    ("out tok/s", lambda part: number(part.throughput_output_tokens_per_second)),
    *((f"TTFT {name}", _of_ttft(name)) for name in ("p50", "p90", "p95", "p99")),
    *((f"TPOT {name}", _of_tpot(name)) for name in ("p50", "p90", "p95", "p99")),
    ("refused tries", lambda part: count(sum(part.refusals.values()))),
    ("longest wait", lambda part: number(part.starvation.longest_wait_seconds)),
    ("never served", lambda part: share(part.starvation.never_served_share)),
)
"""What a page has room for."""


def _cells(part: Slice, columns: Sequence[PartColumn]) -> tuple[str, ...]:
    return tuple(cell(part) for _, cell in columns)


def _parts(run: Run) -> Iterator[tuple[str, Slice]]:
    report = run.report
    yield "all", report.total
    yield from report.lanes.items()
    if len(report.classes) > 1:
        yield from ((f"class {name}", part) for name, part in report.classes.items())
    yield from ((f"quartile {number_}", part) for number_, part in enumerate(report.quartiles, 1))


def _refusals(title: str, chosen: Sequence[Run], runs: Sequence[Run]) -> Table:
    rows = tuple(
        (f"{run_label(run, runs)}: {reason}", count(tries))
        for run in chosen
        for reason, tries in (sorted(run.report.total.refusals.items()) or (("none", 0),))
    )
    return Table(title, ("", "tries"), rows)


def _broken(chosen: Sequence[Run]) -> str:
    sentences = dict.fromkeys(sentence for run in chosen for sentence in run.report.ledger.broken_invariants)
    return " ".join(sentences)
