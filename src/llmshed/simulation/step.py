"""What runs now, and what one step does to prompts and chunks."""

from dataclasses import dataclass, replace

from llmshed.simulation.cost import StepWork
from llmshed.simulation.limits import OutputPlan, plan_output
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import JoinReason, StepKind
from llmshed.simulation.sequences import Entry, FinishReason
from llmshed.simulation.stretch import Stretch


@dataclass(frozen=True, slots=True)
class RunningStep:
    """Engine calls on their way: one with prompts, or a stretch of decodes.

    Args:
        kind: prefill or decode.
        stretch: when they end, unless the engine stalls.
        joined: entries that joined with the first.
        join_reason: see `StepsEnded`.
        decodes: whether the sequences that decode take part; without chunked prefill they pause beside a prompt.
    """

    kind: StepKind
    stretch: Stretch
    joined: tuple[Entry, ...]
    join_reason: JoinReason | None
    decodes: bool

    def cut(self, steps: int) -> "RunningStep":
        """Return the same calls, ended after `steps` of them."""
        return replace(self, stretch=self.stretch.cut(steps))


def with_prompts(work: StepWork, prefilling: list[Entry]) -> StepWork:
    """Add the pieces of prompts to the work of a step.

    Each token of a piece attends to all tokens before it, cached ones included, and to itself.
    """
    tokens = pairs = 0
    for entry in prefilling:
        piece = entry.next_prefill_tokens
        tokens += piece
        pairs += piece * entry.prefilled_tokens + piece * (piece + 1) // 2
    return replace(work, prefill_tokens=tokens, attention_pairs=pairs)


def work_through_prompts(prefilling: list[Entry], running: int, prefill_budget_tokens: int) -> list[Entry]:
    """Move prompts forward by their piece, cut the next piece of what is unfinished, and return those that are done.

    The next piece takes all that the budget leaves beside one token for every other of the `running` sequences. A
    long prompt so fills every step until it is done, and nothing new can join, unless something that decodes ends
    meanwhile. What then joins in the room of one token goes before the older prompt from the next step on, since the
    budget is given to the newest first (`flash_causal_lm.py`, `next_chunk_lengths`).
    """
    for entry in prefilling:
        entry.prefilled_tokens += entry.next_prefill_tokens
    budget = prefill_budget_tokens - (running - 1)
    for entry in reversed(prefilling):
        rest = entry.input_tokens - entry.prefilled_tokens
        entry.next_prefill_tokens = max(min(rest, budget), 1) if rest else 0
        budget -= entry.next_prefill_tokens
    return [entry for entry in prefilling if not entry.prefilling]


def finish_reason(entry: Entry, output_tokens: int) -> FinishReason:
    """Return why a chunk that ended did; a natural end comes before the ceiling."""
    natural = entry.sequence.natural_end
    if natural is not None and output_tokens >= natural.after_tokens:
        return natural.reason
    return FinishReason.LENGTH


def next_chunk(parameters: ReplicaParameters, entry: Entry, output_tokens: int) -> OutputPlan | None:
    """Return the next chunk of an entry that ended one by length; None when its answer ends there.

    TGI appends the text to the prompt and validates the whole again; if that fails, the answer just ends. Tokenizing
    the longer text again is taken to give as many tokens as were produced.
    """
    if output_tokens >= entry.ceiling_tokens:
        return None
    sequence = entry.sequence
    plan = plan_output(
        parameters, sequence.input_tokens + output_tokens, sequence.asked_output_tokens, sequence.truncate_tokens
    )
    return plan if isinstance(plan, OutputPlan) else None
