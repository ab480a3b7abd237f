"""What comes out of the simulated replica: one value for each thing that a server in front of it would see."""

from dataclasses import dataclass
from enum import StrEnum

from llmshed.simulation.sequences import FinishReason


class StepKind(StrEnum):
    """The engine call that a step is; with chunked prefill a `prefill` step also decodes what runs."""

    PREFILL = "prefill"
    DECODE = "decode"


class JoinReason(StrEnum):
    """Why waiting sequences joined a running batch, in TGI's words."""

    CHUNKING = "chunking"
    BACKPRESSURE = "backpressure"
    WAIT_EXCEEDED = "wait_exceeded"


@dataclass(frozen=True, slots=True)
class FirstToken:
    """The first output token of a sequence; those after it follow from `ReplicaModel.output_tokens`."""

    key: int
    at: float


@dataclass(frozen=True, slots=True)
class Preempted:
    """A running sequence lost its KV to others and waits again; what it had is computed anew (vLLM)."""

    key: int
    at: float


@dataclass(frozen=True, slots=True)
class StepsEnded:
    """Engine calls of one kind ended, one after the other, with no other change between them.

    Args:
        kind: prefill or decode.
        count: how many; more than one only for decodes that were advanced over at once.
        seconds: what they took together, a stall included.
        joined: sequences that joined with the first; 0 for a decode.
        join_reason: why they joined a batch that was running; None when nothing ran or nothing joined.
        failed: whether the call failed, and the batch with it.
    """

    kind: StepKind
    count: int
    seconds: float
    joined: int
    join_reason: JoinReason | None
    failed: bool


@dataclass(frozen=True, slots=True)
class ChunkQueued:
    """A sequence ended its chunk below its ceiling and waits at the tail again, its output now part of its input."""

    key: int
    input_tokens: int
    chunk_tokens: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A sequence is complete; its permit and its KV are free.

    Args:
        key: the sequence.
        reason: why it ended; an answer cut short by a failed re-validation says `length` too.
        output_tokens: all tokens produced, over all chunks.
        queued_at: when it first joined the queue.
        started_at: when its first chunk joined a batch.
        at: when it ended.
    """

    key: int
    reason: FinishReason
    output_tokens: int
    queued_at: float
    started_at: float
    at: float


@dataclass(frozen=True, slots=True)
class Dropped:
    """An abandoned sequence was noticed and forgotten: at its next token, or at the front of the queue."""

    key: int
    while_queued: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """A sequence was lost with its whole batch."""

    key: int
    message: str


Result = FirstToken | StepsEnded | ChunkQueued | Preempted | Ended | Dropped | Failed
