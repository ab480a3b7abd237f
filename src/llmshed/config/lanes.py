"""Settings of the lanes: thresholds, default ceilings and objectives."""

from llmshed.config.base import Seconds, Settings, Tokens


class InteractiveThresholds(Settings):
    """Thresholds and objectives of the interactive lane, which a profile states too."""

    max_input_tokens: Tokens = 4096
    """Most input tokens of a prompt in this lane; larger prompts go to bulk."""
    max_output_tokens: Tokens = 1024
    """Highest output ceiling in this lane; a request that asks for more goes to bulk."""
    default_output_tokens: Tokens = 512
    """Output ceiling of a request that names none."""
    ttft_objective_seconds: Seconds = 2.0
    """Service objective: arrival to first token."""
    tpot_objective_seconds: Seconds = 0.1
    """Service objective: mean time per output token after the first."""


class InteractiveLane(InteractiveThresholds):
    """`[lanes.interactive]`: short, latency-sensitive turns."""

    first_byte_timeout_seconds: Seconds = 60.0
    """Longest silence of the engine before its first data event. An answer that is not streamed has this long, and its
    output ceiling times the TPOT objective beside."""
    idle_timeout_seconds: Seconds = 60.0
    """Longest silence between two data events of a stream that has begun; comments that keep it alive are silence."""


class BulkThresholds(Settings):
    """Thresholds and objectives of the bulk lane, which a profile states too."""

    max_input_tokens: Tokens | None = None
    """Most input tokens of a prompt in this lane; beyond it is overflow. Unset: what a pool can hold."""
    max_output_tokens: Tokens | None = None
    """Highest output ceiling in this lane; beyond it is refused. Unset: what the model permits."""
    default_output_tokens: Tokens = 1024
    """Output ceiling of a request that names none."""
    ttft_objective_seconds: Seconds = 120.0
    """Service objective: arrival to first token."""
    tpot_objective_seconds: Seconds = 0.1
    """Service objective: mean time per output token after the first."""


class BulkLane(BulkThresholds):
    """`[lanes.bulk]`: long prompts and work that can wait."""

    first_byte_timeout_seconds: Seconds = 600.0
    """Longest silence of the engine before its first data event. An answer that is not streamed has this long, and its
    output ceiling times the TPOT objective beside."""
    idle_timeout_seconds: Seconds = 120.0
    """Longest silence between two data events of a stream that has begun; comments that keep it alive are silence."""


class LaneSettings(Settings):
    """`[lanes]`: one table for each lane; overflow has none, since it never enters a GPU queue."""

    interactive: InteractiveLane = InteractiveLane()
    """The interactive lane."""
    bulk: BulkLane = BulkLane()
    """The bulk lane."""
