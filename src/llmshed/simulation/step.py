"""What one step does to the entries that take part in it."""

from dataclasses import dataclass

from llmshed.simulation.cost import StepWork
from llmshed.simulation.limits import OutputPlan, plan_output
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import JoinReason, StepKind
from llmshed.simulation.sequences import Entry, FinishReason


@dataclass(frozen=True, slots=True)
class RunningStep:
    """An engine call on its way.

    Args:
        kind: prefill or decode.
        entries: those that take part.
        began_at: when it began, in seconds.
        ends_at: when it ends, unless the engine stalls.
        joined: entries that joined with it.
        join_reason: see `StepEnded`.
    """

    kind: StepKind
    entries: tuple[Entry, ...]
    began_at: float
    ends_at: float
    joined: int
    join_reason: JoinReason | None


def step_seconds(parameters: ReplicaParameters, entries: tuple[Entry, ...]) -> float:
    """Return how long a step over these entries takes."""
    prefill_tokens = sum(entry.next_prefill_tokens for entry in entries)
    decoding = sum(1 for entry in entries if not entry.prefilling)
    return parameters.step_times.seconds(StepWork(prefill_tokens, 0, decoding, 0))


def tokens_of_next_step(entries: list[Entry]) -> int:
    """Return TGI's `current_tokens`: one for each decoding entry, and the next piece of an unfinished prompt."""
    return sum(entry.next_prefill_tokens if entry.prefilling else 1 for entry in entries)


def work_through_prompts(entries: tuple[Entry, ...], prefill_budget_tokens: int) -> None:
    """Move prompts forward by their piece, and cut the next piece of what is unfinished.

    The next piece takes all that the budget leaves beside one token for every other entry. A long prompt so fills
    every step until it is done, and nothing new can join (`flash_causal_lm.py`, `next_chunk_lengths`).
    """
    budget = prefill_budget_tokens - (len(entries) - 1)
    for entry in entries:
        entry.prefilled_tokens += entry.next_prefill_tokens
        rest = entry.input_tokens - entry.prefilled_tokens
        entry.next_prefill_tokens = max(min(rest, budget), 1) if rest else 0
        budget -= entry.next_prefill_tokens


def ending(entry: Entry) -> FinishReason | None:
    """Say whether the token just produced is the last of the entry's chunk, and why; a natural end comes first."""
    natural = entry.sequence.natural_end
    if natural is not None and entry.generated_tokens >= natural.after_tokens:
        return natural.reason
    return FinishReason.LENGTH if entry.chunk_generated_tokens >= entry.chunk_tokens else None


def next_chunk(parameters: ReplicaParameters, entry: Entry) -> OutputPlan | None:
    """Return the next chunk of an entry that ended one by length; None when its answer ends there.

    TGI appends the text to the prompt and validates the whole again; if that fails, the answer just ends. Tokenizing
    the longer text again is taken to give as many tokens as were produced.
    """
    if entry.generated_tokens >= entry.ceiling_tokens:
        return None
    sequence = entry.sequence
    plan = plan_output(
        parameters,
        sequence.input_tokens + entry.generated_tokens,
        sequence.asked_output_tokens,
        sequence.truncate_tokens,
    )
    return plan if isinstance(plan, OutputPlan) else None
