"""Rules between the fields of a profile."""

from collections.abc import Iterator
from itertools import pairwise

from llmshed.config.paths import Path, spelled
from llmshed.config.validation import Remark
from llmshed.profile.sections import Budget, Bulk, Decode, Lanes, Latency, Limits, Output


def budget_contradictions(budget: Budget) -> Iterator[Remark]:
    """Yield the rules that the budget breaks."""
    ceiling = ("budget", "gross_ceiling_tokens")
    low, high = ("budget", "gross_ceiling_low_tokens"), ("budget", "gross_ceiling_high_tokens")
    yield from _ascending((low, budget.gross_ceiling_low_tokens), (ceiling, budget.gross_ceiling_tokens))
    yield from _ascending((ceiling, budget.gross_ceiling_tokens), (high, budget.gross_ceiling_high_tokens))
    if budget.overcommit_ratio > 1 and budget.overcommit_output_ratio is None:
        yield Remark(
            (("budget", "overcommit_output_ratio"), ("budget", "overcommit_ratio")),
            f"is missing; an `overcommit_ratio` of {budget.overcommit_ratio} is only valid for a recorded ratio of"
            " output to ceiling, above 0 and at most 1",
        )
    if budget.basis == "calibrated" and budget.preemptions_per_minute is None:
        yield Remark(
            (("budget", "preemptions_per_minute"), ("budget", "basis")),
            'is missing; a hard cap with the basis "calibrated" comes with the preemptions of the same run, at least 0',
        )


def decode_contradictions(decode: Decode | None) -> Iterator[Remark]:
    """Yield the points of the decode curve that do not ascend."""
    for index, (before, after) in enumerate(pairwise(decode.curve if decode else ())):
        if after.sequences <= before.sequences:
            yield Remark(
                (("decode", "curve", index + 1, "sequences"), ("decode", "curve", index, "sequences")),
                f"{after.sequences} does not exceed the {before.sequences} of the point before it; points ascend",
            )


def latency_contradictions(latency: Latency | None) -> Iterator[Remark]:
    """Yield the quantiles of the latency that do not ascend."""
    if latency:
        yield from _ascending(
            (("latency", "unloaded_ttft_p50_seconds"), latency.unloaded_ttft_p50_seconds),
            (("latency", "unloaded_ttft_p95_seconds"), latency.unloaded_ttft_p95_seconds),
        )


def output_contradictions(output: Output | None) -> Iterator[Remark]:
    """Yield the quantiles of the output that do not ascend."""
    if output:
        yield from _ascending((("output", "p50"), output.p50), (("output", "p90"), output.p90))
        yield from _ascending((("output", "p90"), output.p90), (("output", "p99"), output.p99))


def limit_contradictions(limits: Limits) -> Iterator[Remark]:
    """Yield the rules that the model's limits break."""
    yield from _ascending(
        (("limits", "max_input_tokens"), limits.max_input_tokens),
        (("limits", "max_total_tokens"), limits.max_total_tokens),
    )


def lanes_beyond_limits(lanes: Lanes, limits: Limits) -> Iterator[Remark]:
    """Yield default ceilings that leave no room for any input; a lane's own maximums may exceed a small model's."""
    for name, lane in (("interactive", lanes.interactive), ("bulk", lanes.bulk)):
        if limits.max_total_tokens is not None and lane.default_output_tokens >= limits.max_total_tokens:
            yield Remark(
                (("lanes", name, "default_output_tokens"), ("limits", "max_total_tokens")),
                f"{lane.default_output_tokens} leaves no room for input within `limits.max_total_tokens`,"
                f" {limits.max_total_tokens}",
            )


def bulk_contradictions(bulk: Bulk) -> Iterator[Remark]:
    """Yield the floors above their caps."""
    yield from _ascending(
        (("bulk", "reserved_floor_ratio"), bulk.reserved_floor_ratio),
        (("bulk", "reserved_max_ratio"), bulk.reserved_max_ratio),
    )
    yield from _ascending(
        (("bulk", "prefill_floor_ratio"), bulk.prefill_floor_ratio),
        (("bulk", "prefill_cap_ratio"), bulk.prefill_cap_ratio),
    )


def _ascending(lower: tuple[Path, float | None], upper: tuple[Path, float | None]) -> Iterator[Remark]:
    (path, low), (bound_path, high) = lower, upper
    if low is not None and high is not None and low > high:
        yield Remark((path, bound_path), f"{low} is more than `{spelled(bound_path)}`, {high}")
