"""One sequence inside the simulated vLLM replica."""

from dataclasses import dataclass, field

from llmshed.simulation.sequences import FinishReason, Phase, Sequence
from llmshed.simulation.vllm.blocks import Holding


@dataclass(slots=True, eq=False)
class VllmEntry:
    """A waiting or running sequence; changed by the scheduler and its batch only.

    While a sequence decodes, its output follows from the steps of the pack (`pack.py`), and the three counts below
    are those of the time when it began to.

    Args:
        sequence: what was asked.
        input_tokens: prompt, after truncation.
        ceiling_tokens: most output.
        order: place among all that arrived.
        queued_at: when it joined the queue, in seconds.
        holding: its part of the KV cache.
        started_at: when it first ran.
        output_tokens: tokens produced.
        computed_tokens: tokens whose keys and values are in the KV cache.
        blocks: KV blocks held.
        piece_tokens: prompt tokens that the step in progress works through.
        joined: place among all that began to run; a later run of a preempted sequence counts anew.
        began_at_step: step of the pack at which it would have had no output, had it decoded from the start.
        abandoned: whether its client is gone.
        phase: where it is.
    """

    sequence: Sequence
    input_tokens: int
    ceiling_tokens: int
    order: int
    queued_at: float
    holding: Holding
    started_at: float | None = None
    output_tokens: int = 0
    computed_tokens: int = 0
    blocks: int = 0
    piece_tokens: int = 0
    joined: int = 0
    began_at_step: int = 0
    abandoned: bool = False
    phase: Phase = field(default=Phase.QUEUED)

    @property
    def key(self) -> int:
        """Return the sequence's key."""
        return self.sequence.key

    @property
    def known_tokens(self) -> int:
        """Return prompt and output so far: what has to be computed before the next token."""
        return self.input_tokens + self.output_tokens

    @property
    def last_token(self) -> int:
        """Return the output with which it ends: where the model stops by itself, at most the ceiling."""
        natural = self.sequence.natural_end
        return self.ceiling_tokens if natural is None else min(self.ceiling_tokens, natural.after_tokens)

    @property
    def finish_reason(self) -> FinishReason:
        """Return why it ends at its last token; a natural end comes before the ceiling."""
        natural = self.sequence.natural_end
        if natural is not None and natural.after_tokens <= self.ceiling_tokens:
            return natural.reason
        return FinishReason.LENGTH

    @property
    def rank(self) -> tuple[int, int]:
        """Return the order of service under the priority policy; the largest is preempted first."""
        return self.sequence.priority, self.order
