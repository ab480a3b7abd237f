"""vLLM's check of one prompt against its context, and the output that follows from it."""

from llmshed.simulation.limits import InputTooLong, LimitProblem, OutputPlan, TotalTooLong
from llmshed.simulation.sequences import Sequence


def plan_output(max_model_len: int, sequence: Sequence) -> OutputPlan | LimitProblem:
    """Return the output that a counted prompt may have: what it asks for, cut to what the context leaves.

    The prompt must leave room for one token. A ceiling above the whole context is refused, one that only does not fit
    beside the prompt is cut without a word (`get_max_tokens`). The plan is one chunk: vLLM never queues an answer in
    parts. A prompt of no tokens counts as one, since a forward pass takes a position at least.

    Args:
        max_model_len: longest prompt and output together, at least 2.
        sequence: what is asked; `truncate_tokens` is vLLM's `truncate_prompt_tokens`.
    """
    given = sequence.input_tokens
    kept = given if sequence.truncate_tokens is None else min(given, sequence.truncate_tokens)
    input_tokens = max(kept, 1)
    if input_tokens >= max_model_len:
        return InputTooLong(max_model_len - 1, input_tokens)
    room = max_model_len - input_tokens
    asked = room if sequence.asked_output_tokens is None else sequence.asked_output_tokens
    if asked > max_model_len:
        return TotalTooLong(max_model_len, input_tokens, asked)
    ceiling = min(asked, room)
    return OutputPlan(input_tokens, ceiling, ceiling)
