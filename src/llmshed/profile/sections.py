"""The sections of a profile file."""

from typing import Annotated, Literal

from pydantic import Field

from llmshed.config.base import Ratio, Seconds, Settings, Share, Tokens
from llmshed.config.lanes import BulkThresholds, InteractiveThresholds
from llmshed.profile.fingerprint import Word

Sequences = Annotated[int, Field(ge=1, le=10**6)]
Factor = Annotated[float, Field(ge=1, le=10)]
PositiveRatio = Annotated[float, Field(gt=0, le=1)]
Rate = Annotated[float, Field(gt=0, le=1e9)]


class Budget(Settings):
    """`[budget]`: what a replica carries, in reserved tokens and in sequences."""

    gross_ceiling_tokens: Tokens
    """Gross ceiling: most reserved tokens in flight at which the objectives held; the lower confidence bound."""
    guard_band_ratio: Ratio = 0.10
    """Part of the gross ceiling that is never lent."""
    overcommit_ratio: Factor = 1.0
    """Reserved tokens lent for each token of the ceiling, since most outputs end before theirs; 1 lends none twice."""
    overcommit_output_ratio: PositiveRatio | None = None
    """Recorded ratio of true output to output ceiling that the overcommit is valid for; needed when it is above 1."""
    hard_cap_sequences: Sequences
    """Hard cap: most sequences at once, whatever their size."""
    preemptions_per_minute: Annotated[float, Field(ge=0, le=1e6)] | None = None
    """Preemptions a minute seen at the hard cap, as the budget for more; needed when it was measured."""
    basis: Literal["calibrated", "declared"]
    """Whether these numbers were measured by `llmshed calibrate` or are the operator's word."""
    gross_ceiling_low_tokens: Tokens | None = None
    """Lower confidence bound of the measurement; absent: not known."""
    gross_ceiling_high_tokens: Tokens | None = None
    """Upper confidence bound of the measurement; absent: not known."""
    rule: Word | None = None
    """Name of the rule that found the ceiling; absent: none did."""


class Prefill(Settings):
    """`[prefill]`: how fast prompts are processed; without the section prefill is not metered."""

    safe_tokens_per_second: Rate
    """Highest rate of prompt tokens at which the TPOT objective of running sequences held."""
    inflight_tokens: Tokens | None = None
    """Most dispatched prompt tokens without a first token; absent: two engine steps."""


class CurvePoint(Settings):
    """One point of the decode curve."""

    sequences: Sequences
    """Sequences that decode together."""
    seconds_per_token: Seconds
    """Time of one further token of each."""


class Decode(Settings):
    """`[decode]`: how fast tokens are produced; without the section no remaining time is predicted."""

    seconds_per_token: Seconds
    """Time of one further token of a sequence at the gross ceiling."""
    curve: tuple[CurvePoint, ...] = ()
    """The same by the number of sequences, ascending; empty: only the figure above is known."""


class Latency(Settings):
    """`[latency]`: time to first token of an idle replica; without the section not known."""

    unloaded_ttft_p50_seconds: Seconds
    """Median."""
    unloaded_ttft_p95_seconds: Seconds
    """95th percentile."""


class Output(Settings):
    """`[output]`: true output tokens of the workload; without the section not known."""

    p50: Tokens
    """Median."""
    p90: Tokens
    """90th percentile."""
    p99: Tokens
    """99th percentile."""


class Limits(Settings):
    """`[limits]`: what the model takes in one sequence; absent: what the engine tells."""

    max_input_tokens: Tokens | None = None
    """Most input tokens."""
    max_total_tokens: Tokens | None = None
    """Most input and output tokens together."""


class InteractiveProfile(InteractiveThresholds):
    """`[lanes.interactive]`: the thresholds and objectives that the profile was made for."""


class BulkProfile(BulkThresholds):
    """`[lanes.bulk]`: the thresholds and objectives that the profile was made for."""


class Lanes(Settings):
    """`[lanes]`: one table for each lane; absent: the defaults of `llmshed.toml`."""

    interactive: InteractiveProfile = InteractiveProfile()
    """The interactive lane."""
    bulk: BulkProfile = BulkProfile()
    """The bulk lane."""


class Bulk(Settings):
    """`[bulk]`: what bulk work may and must get on a replica that interactive work shares."""

    reserved_max_ratio: Share = 0.5
    """Most of the safe budget that bulk may hold."""
    reserved_floor_ratio: Share = 0.05
    """Least of the safe budget that bulk gets while it has work."""
    prefill_cap_ratio: Share | None = None
    """Bulk cap: most of a prefill window while interactive work comes. Unset: 0.3, or 0.05 before an engine that starts
    nothing else while it processes a prompt (TGI); at least the floor."""
    prefill_floor_ratio: Share = 0.05
    """Bulk floor: least of a prefill window while it has work."""


class Windows(Settings):
    """`[windows]`: over what the figures were taken."""

    seconds: Seconds = 60.0
    """Length of one window."""
    minimum_samples: Annotated[int, Field(ge=1, le=10**6)] = 20
    """Arrivals below which a window says nothing."""
