"""The identity of a prompt's leading tokens, which decides what a prefix cache can reuse."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PromptBlocks:
    """The leading tokens of a prompt as a row of ids.

    Two prompts whose first n ids are equal share their first n x `unit_tokens` tokens. Tokens beyond the last id are
    taken to be found in no other prompt.

    Args:
        ids: one id for each unit, first unit first. Token ids with a unit of 1, or hashes of larger blocks.
        unit_tokens: tokens that one id stands for, at least 1.
    """

    ids: tuple[int, ...]
    unit_tokens: int
