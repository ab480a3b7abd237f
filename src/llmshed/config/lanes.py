"""Settings of the lanes: thresholds, default ceilings and objectives."""

from typing import Annotated

from pydantic import Field

from llmshed.config.base import Ratio, Seconds, Settings, Tokens

Waiting = Annotated[int, Field(ge=0, le=10**6)]


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

    queue_requests: Waiting = 256
    """Most requests of this lane that wait in each pool; 0 lets nothing wait."""
    queue_tokens: Tokens | None = None
    """Most reserved tokens of this lane that wait in each pool. Unset: the safe budgets of its replicas together."""
    queue_share_ratio: Ratio = 0.3
    """Part of the TTFT objective that waiting in the gateway may take; the rest is the engine's."""
    max_residence_seconds: Seconds | None = None
    """Longest wait in the queue. Unset: one and a half times the queue's share of the TTFT objective."""
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

    queue_requests: Waiting = 1024
    """Most requests of this lane that wait in each pool; 0 lets nothing wait."""
    queue_tokens: Tokens | None = None
    """Most reserved tokens of this lane that wait in each pool. Unset: the safe budgets of its replicas together."""
    queue_share_ratio: Ratio = 0.3
    """Part of the TTFT objective that waiting in the gateway may take; the rest is the engine's."""
    max_residence_seconds: Seconds | None = None
    """Longest wait in the queue. Unset: one and a half times the queue's share of the TTFT objective."""
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
