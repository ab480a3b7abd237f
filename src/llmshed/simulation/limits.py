"""TGI's check of one prompt against its limits, and the output that follows from it (router/src/validation.rs)."""

from dataclasses import dataclass
from typing import assert_never

from llmshed.simulation.parameters import CHUNK_TOKENS, ReplicaParameters
from llmshed.simulation.versions import Chunking


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """How much output a prompt may have.

    Args:
        input_tokens: prompt after `truncate`.
        chunk_tokens: most output before the sequence is queued again; KV is reserved for it.
        ceiling_tokens: output after which it is not queued again. With chunks the last one runs to its end, so the
            output may exceed this by less than a chunk.
    """

    input_tokens: int
    chunk_tokens: int
    ceiling_tokens: int


@dataclass(frozen=True, slots=True)
class TotalTooLong:
    """Prompt and chunk together exceed `max_total_tokens`."""

    max_total_tokens: int
    input_tokens: int
    chunk_tokens: int


@dataclass(frozen=True, slots=True)
class InputTooLong:
    """The prompt exceeds `max_input_tokens`."""

    max_input_tokens: int
    input_tokens: int


LimitProblem = TotalTooLong | InputTooLong


def plan_output(
    parameters: ReplicaParameters, input_tokens: int, asked_output_tokens: int | None, truncate_tokens: int | None
) -> OutputPlan | LimitProblem:
    """Check a counted prompt as TGI does, total before input, and return the output that it may have.

    Only the first chunk is checked from 3.1.1 on, so `asked_output_tokens` may exceed `max_total_tokens`.

    Args:
        parameters: limits and version.
        input_tokens: tokens of the whole prompt.
        asked_output_tokens: ceiling asked for, at least 1; None for none, which fills what the total leaves (the
            default of older versions, 100, is put in where the field is read).
        truncate_tokens: keeps only so many of the last tokens; None keeps all.
    """
    length = input_tokens if truncate_tokens is None else min(input_tokens, truncate_tokens)
    absent = asked_output_tokens is None
    ceiling = max(parameters.max_total_tokens - length, 0) if asked_output_tokens is None else asked_output_tokens
    chunk = min(ceiling, CHUNK_TOKENS) if _is_chunked(parameters.rules.chunking, absent=absent) else ceiling
    if length + chunk > parameters.max_total_tokens:
        return TotalTooLong(parameters.max_total_tokens, length, chunk)
    if length > parameters.max_input_tokens:
        return InputTooLong(parameters.max_input_tokens, length)
    return OutputPlan(length, chunk, ceiling)


def _is_chunked(chunking: Chunking, *, absent: bool) -> bool:
    match chunking:
        case Chunking.NEVER:
            return False
        case Chunking.WHEN_ABSENT:
            return absent
        case Chunking.ALWAYS:
            return True
        case _:
            assert_never(chunking)
