"""One sequence on its way through the simulated replica."""

from dataclasses import dataclass, field
from enum import Enum, StrEnum

from llmshed.simulation.prefixes import PromptBlocks


class FinishReason(StrEnum):
    """Why a sequence ended, in TGI's words."""

    LENGTH = "length"
    EOS = "eos_token"
    STOP = "stop_sequence"


@dataclass(frozen=True, slots=True)
class NaturalEnd:
    """Where the model itself would stop, were there no ceiling.

    Args:
        after_tokens: output tokens, the last of them included; at least 1.
        reason: `EOS` or `STOP`.
    """

    after_tokens: int
    reason: FinishReason


@dataclass(frozen=True, slots=True)
class Sequence:
    """What a validated request asks of the engine.

    Args:
        key: names the sequence; never used twice.
        input_tokens: tokens of the prompt, before `truncate`.
        asked_output_tokens: output ceiling; None when the request names none.
        truncate_tokens: TGI's `truncate`; None when absent.
        natural_end: where the model stops by itself; None when it runs to the ceiling.
        blocks: identity of the prompt's leading tokens; None when the prefix cache is neither asked nor filled.
        priority: order of service where the engine knows one (vLLM: the lower goes first).
    """

    key: int
    input_tokens: int
    asked_output_tokens: int | None = None
    truncate_tokens: int | None = None
    natural_end: NaturalEnd | None = None
    blocks: PromptBlocks | None = None
    priority: int = 0


class Phase(Enum):
    """Where a sequence is."""

    VALIDATING = "validating"
    """Holds a permit; its prompt is being tokenized."""
    QUEUED = "queued"
    PREFILL = "prefill"
    DECODE = "decode"


@dataclass(frozen=True, slots=True)
class SequenceView:
    """One live sequence as a reader sees it; all counts in tokens."""

    key: int
    phase: Phase
    input_tokens: int
    output_tokens: int
    ceiling_tokens: int | None
    kv_tokens: int
    abandoned: bool


@dataclass(slots=True, eq=False)
class Entry:
    """A queued or running sequence; changed by the scheduler only.

    Args:
        sequence: what was asked.
        input_tokens: prompt of the present chunk: the first prompt and what was generated before.
        chunk_tokens: most output of the present chunk; KV is held for it from the start.
        ceiling_tokens: output after which no further chunk is queued.
        order: place in the line; grows with each time that an entry joins the tail.
        queued_at: when it first joined the queue, in seconds.
        prompt: identity of the present chunk's prompt for the prefix cache; None when it takes no part in it.
        started_at: when its first chunk joined a batch.
        cached_tokens: leading tokens of the prompt that the prefix cache had.
        prefilled_tokens: tokens of the prompt that are in the KV, cached ones included.
        next_prefill_tokens: piece of the prompt that the coming step works through.
        earlier_tokens: output of the chunks before the present one.
        decoding_since: decode step of the batch at which it gave the first token of its chunk; None before that.
        blocks: KV blocks that it holds.
        abandoned: whether its client is gone.
        phase: where it is.
    """

    sequence: Sequence
    input_tokens: int
    chunk_tokens: int
    ceiling_tokens: int
    order: int
    queued_at: float
    prompt: PromptBlocks | None = None
    started_at: float | None = None
    cached_tokens: int = 0
    prefilled_tokens: int = 0
    next_prefill_tokens: int = 0
    earlier_tokens: int = 0
    decoding_since: int | None = None
    blocks: int = 0
    abandoned: bool = False
    phase: Phase = field(default=Phase.QUEUED)

    @property
    def key(self) -> int:
        """Return the sequence's key."""
        return self.sequence.key

    @property
    def prefilling(self) -> bool:
        """Say whether part of the prompt still waits to be worked through."""
        return self.prefilled_tokens < self.input_tokens

    @property
    def chunk_end_tokens(self) -> int:
        """Return the output at which the present chunk ends: where the model stops by itself, or else its ceiling."""
        natural = self.sequence.natural_end
        if natural is None:
            return self.chunk_tokens
        return max(min(natural.after_tokens - self.earlier_tokens, self.chunk_tokens), 1)
