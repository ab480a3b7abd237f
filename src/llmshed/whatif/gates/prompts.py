"""How much of a request's prompts an engine has to work through, and what of them it shares."""

from dataclasses import dataclass

from llmshed.simulation.prefixes import PromptBlocks


@dataclass(frozen=True, slots=True)
class PromptWork:
    """What an engine works through for prompts.

    Args:
        tokens: positions that are computed.
        attention_pairs: of each of these with all before it, cached ones included, and itself.
    """

    tokens: int
    attention_pairs: int

    def __add__(self, other: "PromptWork") -> "PromptWork":
        """Return the work of both."""
        return PromptWork(self.tokens + other.tokens, self.attention_pairs + other.attention_pairs)


NO_WORK = PromptWork(0, 0)


def prompt_work(input_tokens: int, cached_tokens: int = 0, copies: int = 1) -> PromptWork:
    """Return the work of a prompt whose first tokens are cached, computed for each of its copies."""
    pairs = (input_tokens * (input_tokens + 1) - cached_tokens * (cached_tokens + 1)) // 2
    return PromptWork(copies * (input_tokens - cached_tokens), copies * pairs)


class PrefixesOnBoard:
    """Prefixes in the KV cache of one replica that requests on board refer to; what several share counts once."""

    def __init__(self) -> None:
        """Start without any."""
        self._prefixes: dict[int, PromptBlocks] = {}
        self.tokens = 0

    def added_tokens(self, prefix: PromptBlocks | None) -> int:
        """Return the tokens of a prefix that no prefix on board shares."""
        if prefix is None:
            return 0
        shared = max((_equal_ids(prefix, other) for other in self._prefixes.values()), default=0)
        return (len(prefix.ids) - shared) * prefix.unit_tokens

    def join(self, key: int, prefix: PromptBlocks | None) -> None:
        """Let a request refer to a prefix."""
        if prefix is not None:
            self.tokens += self.added_tokens(prefix)
            self._prefixes[key] = prefix

    def leave(self, key: int) -> None:
        """Let a request refer to nothing any more."""
        prefix = self._prefixes.pop(key, None)
        self.tokens -= self.added_tokens(prefix)


def _equal_ids(left: PromptBlocks, right: PromptBlocks) -> int:
    """Return how many ids at the front are equal; prompts with ids of different units share none."""
    if left.unit_tokens != right.unit_tokens:
        return 0
    equal = 0
    for one, other in zip(left.ids, right.ids, strict=False):
        if one != other:
            break
        equal += 1
    return equal
