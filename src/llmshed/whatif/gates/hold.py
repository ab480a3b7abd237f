"""What those on board of one replica hold of it, and who else has room; a prefix that several share counts once."""

from collections.abc import Iterable

from llmshed.simulation.prefixes import PromptBlocks
from llmshed.whatif.gates.engine_facts import EngineFacts
from llmshed.whatif.gates.passenger import Passenger
from llmshed.whatif.gates.prompts import PrefixesOnBoard, PromptWork


class Hold:
    """Tokens, KV and sequences on board."""

    def __init__(self, facts: EngineFacts) -> None:
        """Start empty."""
        self._facts = facts
        self._prefixes = PrefixesOnBoard()
        self._prefix_tokens = 0
        self._kv_tokens = 0
        self.sequences = 0
        self.true_tokens = 0

    @property
    def held_tokens(self) -> int:
        """Return the true tokens on board, those of a shared prefix once."""
        return self.true_tokens - self._prefix_tokens + self._prefixes.tokens

    @property
    def kv_tokens(self) -> int:
        """Return the KV that all on board together may come to hold, counted likewise."""
        return self._kv_tokens - self._prefix_tokens + self._prefixes.tokens

    def has_room(self, passenger: Passenger, work: PromptWork, level_tokens: int) -> bool:
        """Say whether there is room beside those on board.

        Args:
            passenger: who would come.
            work: what of its prompts would be computed; the rest is cached.
            level_tokens: most tokens to be held.
        """
        prefix = self._prefix(passenger, work)
        shared = _tokens(prefix) * passenger.sequences - self._prefixes.added_tokens(prefix)
        if self.held_tokens + passenger.true_tokens - shared > level_tokens:
            return False
        if self.sequences + passenger.sequences > self._facts.most_sequences:
            return False
        return self.kv_tokens + passenger.kv_tokens - shared <= self._facts.kv_tokens

    def join(self, passenger: Passenger) -> None:
        """Let a passenger hold what it needs; its work is known."""
        passenger.prefix = self._prefix(passenger, passenger.work)
        self._prefixes.join(passenger.key, passenger.prefix)
        self._count(passenger, 1)

    def leave(self, passenger: Passenger) -> None:
        """Let a passenger hold nothing any more."""
        self._prefixes.leave(passenger.key)
        self._count(passenger, -1)

    def check(self, passengers: Iterable[Passenger]) -> list[str]:
        """Return what does not fit those who are on board, as sentences."""
        counted = sum(one.true_tokens for one in passengers)
        if counted == self.true_tokens:
            return []
        return [f"{self.true_tokens} true tokens are in flight, the passengers sum to {counted}"]

    def _prefix(self, passenger: Passenger, work: PromptWork) -> PromptBlocks | None:
        """Return what of its prompt others may refer to as well, in whole ids; None for nothing."""
        blocks = passenger.blocks
        if blocks is None:
            return None
        input_tokens = passenger.input_tokens // passenger.sequences
        cached = input_tokens - work.tokens // passenger.sequences
        tokens = input_tokens if self._facts.shares_running_prompts else cached
        ids = blocks.ids[: tokens // blocks.unit_tokens]
        return PromptBlocks(ids, blocks.unit_tokens) if ids else None

    def _count(self, passenger: Passenger, sign: int) -> None:
        self._prefix_tokens += sign * _tokens(passenger.prefix) * passenger.sequences
        self._kv_tokens += sign * passenger.kv_tokens
        self.sequences += sign * passenger.sequences
        self.true_tokens += sign * passenger.true_tokens


def _tokens(prefix: PromptBlocks | None) -> int:
    return 0 if prefix is None else len(prefix.ids) * prefix.unit_tokens
