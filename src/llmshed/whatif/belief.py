"""What the gate believes against what the engines hold: the ledger's truth.

The gate's belief is taken from its own words: a request is dispatched from its `Dispatch` to its `Released`.
"""

from collections import Counter

from llmshed.admission.actions import Dispatch, Released
from llmshed.whatif.replicas import Replicas
from llmshed.whatif.report import LedgerTruth

MOST_SENTENCES = 20
"""Broken invariants that are kept word for word; the others are only counted."""


class Belief:
    """Follows a gate's words, and compares them with the engines when it is told to look."""

    def __init__(self) -> None:
        """Start with a gate that holds nothing."""
        self._held: dict[int, tuple[str, int]] = {}
        self._reserved: Counter[str] = Counter()
        self._looks = 0
        self._only_in_gate = 0
        self._only_in_engine = 0
        self._above = 0
        self._most_above_tokens = 0
        self._reserved_tokens = 0
        self._held_tokens = 0
        self._sentences: list[str] = []
        self._broken = 0

    def dispatched(self, action: Dispatch) -> None:
        """Note a charge."""
        reservation = action.verdict.reservation
        tokens = 0 if reservation is None else reservation.total_tokens
        if action.key in self._held:
            self.note_broken((f"request {action.key} was dispatched twice",))
        self._held[action.key] = (action.replica, tokens)
        self._reserved[action.replica] += tokens

    def released(self, action: Released) -> None:
        """Note that a charge was given back."""
        held = self._held.pop(action.key, None)
        if held is None:
            self.note_broken((f"request {action.key} was released and not dispatched",))
            return
        replica, tokens = held
        self._reserved[replica] -= tokens
        if replica != action.replica:
            self.note_broken((f"request {action.key} was dispatched to {replica} and released on {action.replica}",))

    def look(self, replicas: Replicas) -> None:
        """Compare; the engines must have been advanced to the instant."""
        inside: set[tuple[str, int]] = set()
        above = False
        for replica in replicas:
            views = replica.model.sequences()
            inside |= {(replica.name, replica.owners[view.key].key) for view in views if view.key in replica.owners}
            over = replica.model.held_kv_tokens - self._reserved[replica.name]
            above = above or over > 0
            self._most_above_tokens = max(self._most_above_tokens, over)
            self._held_tokens += replica.model.held_kv_tokens
        believed = {(replica_name, key) for key, (replica_name, _) in self._held.items()}
        self._looks += 1
        self._only_in_gate += len(believed - inside)
        self._only_in_engine += len(inside - believed)
        self._above += above
        self._reserved_tokens += self._reserved.total()

    def note_broken(self, sentences: tuple[str, ...]) -> None:
        """Keep broken invariants, whoever stated them."""
        self._broken += len(sentences)
        self._sentences += sentences[: MOST_SENTENCES - len(self._sentences)]

    def truth(self) -> LedgerTruth:
        """Return the figures."""
        looks = self._looks or 1
        return LedgerTruth(
            looks=self._looks,
            only_in_gate=self._only_in_gate,
            only_in_engine=self._only_in_engine,
            looks_above_reserved=self._above,
            most_above_reserved_tokens=self._most_above_tokens,
            mean_reserved_tokens=self._reserved_tokens / looks,
            mean_held_tokens=self._held_tokens / looks,
            broken_invariants=tuple(self._sentences),
            broken_invariants_count=self._broken,
        )
