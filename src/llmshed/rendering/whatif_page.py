"""The runs of `llmshed whatif` as one page: the answer first, drawings by scale, then every figure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from llmshed.rendering.figures import factor, number, share
from llmshed.rendering.hindcast_table import hindcast_table, verdict
from llmshed.rendering.page import Figure, Page, Section
from llmshed.rendering.plots import Caption, bars, curve
from llmshed.rendering.whatif_tables import (
    cell_table,
    difference_table,
    part_tables,
    replica_table,
    run_label,
    scale_tables,
    scales_of,
)
from llmshed.whatif.compare import Difference, Run
from llmshed.whatif.hindcast import Hindcast

_QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("most", 1.0))


@dataclass(frozen=True, slots=True)
class WhatifResult:
    """All that one call of `llmshed whatif` found.

    Args:
        facts: what was simulated, by name, for people.
        runs: every run, by scale, then configuration, then policy.
        differences: what the other configuration changes, for each scale and policy; empty without one.
        warnings: what a reader should know before believing it, one sentence each.
        hindcast: how the run compares with the log that the traffic comes from; None for other traces.
    """

    facts: Mapping[str, str]
    runs: tuple[Run, ...]
    differences: tuple[Difference, ...] = ()
    warnings: tuple[str, ...] = ()
    hindcast: Hindcast | None = None


def summary(result: WhatifResult) -> tuple[str, ...]:
    """Return the result in a sentence for each configuration and policy, after that of the hindcast."""
    checked = () if result.hindcast is None else (verdict(result.hindcast),)
    first: dict[tuple[str, str], list[Run]] = {}
    for run in result.runs:
        first.setdefault((run.configuration, run.policy), []).append(run)
    return checked + tuple(_told(runs, run_label(runs[0], result.runs)) for runs in first.values())


def whatif_page(result: WhatifResult, version: str, *, drawn: bool = True) -> Page:
    """Return the page; `version` is llmshed's own, `drawn` False leaves the drawings out.

    Raises:
        MissingPlotsError: drawings are wanted and matplotlib is not installed.
    """
    scales = scales_of(result.runs)
    sections = [Section("Before you believe it", result.warnings)] if result.warnings else []
    if result.hindcast is not None:
        sections.append(Section("Against what happened", tables=(hindcast_table(result.hindcast),)))
    if len(scales) > 1:
        sections.append(Section("Against the rate of requests", figures=tuple(_by_scale(result.runs)) if drawn else ()))
    if result.differences:
        tables = tuple(difference_table(one) for one in result.differences)
        sections.append(Section("What the other configuration changes", tables=tables))
    for scale in scales:
        figures = tuple(_at_scale(result.runs, scale)) if drawn else ()
        sections.append(Section(f"At {factor(scale)}", (), figures, scale_tables(result.runs, scale)))
    parts = tuple(table for scale in scales for table in part_tables(result.runs, scale))
    sections.append(Section("Lanes, classes and input quartiles", tables=parts))
    rest = [table for run in result.runs for table in (cell_table(run, result.runs), replica_table(run, result.runs))]
    sections.append(Section("Everything else", tables=tuple(rest)))
    kept = tuple(section for section in sections if section.sentences or section.figures or section.tables)
    return Page("What if", summary(result), tuple(result.facts.items()), kept, f"llmshed {version}")


def _told(runs: Sequence[Run], label: str) -> str:
    first, last = runs[0], runs[-1]
    total = first.report.total
    text = (
        f"{label}: {number(total.goodput_tokens_per_second)} good tokens/s at {factor(first.scale)}, where"
        f" {share(total.attainment)} of requests met their objectives"
    )
    if last is not first:
        total = last.report.total
        text += f"; {number(total.goodput_tokens_per_second)} at {factor(last.scale)}, {share(total.attainment)}"
    return f"{text}."


def _by_scale(runs: Sequence[Run]) -> Iterator[Figure]:
    tokens: dict[str, list[tuple[float, float]]] = {}
    attained: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        label, total = run_label(run, runs), run.report.total
        tokens.setdefault(label, []).append((run.scale, total.goodput_tokens_per_second))
        if total.attainment is not None:
            attained.setdefault(label, []).append((run.scale, total.attainment * 100))
    words = "; ".join(f"{label}: {_points(points)}" for label, points in tokens.items())
    caption = Caption("goodput", "Goodput against the rate", words, "times the trace's rate", "good tokens/s")
    yield Figure(curve(caption, tokens, "log"), "Tokens of requests that met their objectives, per second offered.")
    words = "; ".join(f"{label}: {_points(points)} %" for label, points in attained.items())
    caption = Caption("attainment", "Attainment against the rate", words, "times the trace's rate", "attained, %")
    yield Figure(
        curve(caption, attained, "log", 105), "Share of feasible requests that met theirs; refused ones count."
    )


def _points(points: Sequence[tuple[float, float]]) -> str:
    return ", ".join(f"{number(y)} at {factor(x)}" for x, y in points)


def _at_scale(runs: Sequence[Run], scale: float) -> Iterator[Figure]:
    chosen = {run_label(run, runs): run for run in runs if run.scale == scale}
    name, at = f"at-{factor(scale).replace('.', '-').replace('+', '')}", factor(scale)
    times = {label: _distribution(run) for label, run in chosen.items()}
    words = "; ".join(f"{label}: half within {_half(points)}" for label, points in times.items())
    caption = Caption(f"{name}-ttft", f"TTFT at {at}", words, "seconds from arrival", "% within")
    yield Figure(curve(caption, times, "log", 105), "Share of first tokens within a time: at 50, 90, 95, 99 and 100 %.")
    refused = {label: {key: float(n) for key, n in run.report.total.refusals.items()} for label, run in chosen.items()}
    if any(refused.values()):
        words = "; ".join(f"{label}: {_counted(parts)}" for label, parts in refused.items())
        caption = Caption(f"{name}-refusals", f"Refused tries at {at}", words, "tries")
        yield Figure(bars(caption, refused), "Tries that were refused, by reason; one request may be tried again.")
    held = {
        label: [(point.at_seconds, point.kv_held_share * 100) for point in run.report.timeline]
        for label, run in chosen.items()
    }
    if any(held.values()):
        words = "; ".join(
            f"{label}: at most {number(max(y for _, y in line))} %" for label, line in held.items() if line
        )
        caption = Caption(f"{name}-kv", f"KV held at {at}", words, "seconds of the trace", "KV held, %")
        yield Figure(curve(caption, held, y_most=105), "Share of the KV caches that was held, over the trace's time.")


def _distribution(run: Run) -> list[tuple[float, float]]:
    told = run.report.total.ttft_seconds
    values = ((getattr(told, name), part * 100) for name, part in _QUANTILES)
    return [(value, part) for value, part in values if value is not None]


def _half(points: Sequence[tuple[float, float]]) -> str:
    return f"{number(points[0][0])} s" if points else "no time: nothing was served"


def _counted(parts: Mapping[str, float]) -> str:
    return ", ".join(f"{reason} {tries:,.0f}" for reason, tries in parts.items()) or "none"
