"""When reserved tokens and seats of a replica come free, as a curve that is built seldom and read often.

Each charge is expected to end twice, at a low and a high quantile of the lengths that answers like it get, and gives
half of its tokens back at each. The quantiles of neighbouring charges differ by the golden ratio, so over many charges
they cover 0..1 evenly and the curve is the mean one: with a hundred answers that end at random the first comes free
long before any of them has reached its mean.

A charge of several sequences comes free when the longest ends, so its ceiling stands. One that outlived its ceiling at
the known pace is expected within as long again as it is late already: it is slow, not about to end at every instant.

Between two rebuilds what was freed is counted as the front of the curve, wherever it stood there: the curve tells how
much comes free until when, and that much of it came. What was taken since then stands behind its end.
"""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

from llmshed.admission.estimate.outputs import OutputModel
from llmshed.admission.estimate.pace import DecodePace
from llmshed.admission.ledger import Charge
from llmshed.admission.policy import ReplicaBudget
from llmshed.admission.release import prefill_ends

REBUILD_SECONDS = 0.1
"""Age at which the curve is built anew: waits are told in tenths of a second at best."""
REBUILD_TAKEN_RATIO = 0.25
"""It is built before its age when that much of it was taken since: an idle replica that fills within an instant is then
forecast as well, at a cost that is amortised over what was taken."""
GOLDEN_RATIO = 0.6180339887498949
"""Multiples of it, less their whole part, are spread more evenly over 0..1 than those of any other number."""


class ReleaseForecast:
    """The release curve of one replica."""

    __slots__ = (
        "_at",
        "_built_at",
        "_freed_sequences",
        "_freed_tokens",
        "_new",
        "_new_tokens",
        "_sequences",
        "_tokens",
    )

    def __init__(self) -> None:
        """Start with an empty replica."""
        self._at: list[float] = []
        self._tokens: list[float] = []
        self._sequences: list[float] = []
        self._built_at = float("-inf")
        self._new: dict[int, int] = {}
        self._new_tokens = 0
        self._freed_tokens = 0
        self._freed_sequences = 0

    def took(self, charge: Charge) -> None:
        """Note a charge that was just taken."""
        self._new[charge.key] = charge.reservation.total_tokens
        self._new_tokens += charge.reservation.total_tokens

    def freed(self, charge: Charge) -> None:
        """Note a charge that was just given back."""
        new = self._new.pop(charge.key, None)
        if new is not None:
            self._new_tokens -= new
            return
        self._freed_tokens += charge.reservation.total_tokens
        self._freed_sequences += charge.reservation.sequences

    def refresh(
        self, charges: Iterable[Charge], budget: ReplicaBudget, outputs: OutputModel, pace: DecodePace, now: float
    ) -> None:
        """Build the curve anew if it is too old; `charges` are all of the replica in the order of their dispatch."""
        known = self._tokens[-1] if self._tokens else 0.0
        grown = self._new_tokens > REBUILD_TAKEN_RATIO * known
        if now - self._built_at < REBUILD_SECONDS and not grown:
            return
        curve = sorted(_ends(list(charges), budget, outputs, pace.seconds_per_token(budget), now))
        self._at = [at for at, _, _ in curve]
        self._tokens = list(accumulate(tokens for _, tokens, _ in curve))
        self._sequences = list(accumulate(sequences for _, _, sequences in curve))
        self._built_at = now
        self._new.clear()
        self._new_tokens = self._freed_tokens = self._freed_sequences = 0

    def seconds_until(self, lack_tokens: float, lack_sequences: float, now: float) -> float | None:
        """Return how long until that much more is free than is free now; 0 for no lack.

        None when all that is charged would not be enough. The curve is read as it was built: see `refresh`.
        """
        if lack_tokens <= 0 and lack_sequences <= 0:
            return 0.0
        at = -1
        if lack_tokens > 0:
            at = bisect_left(self._tokens, lack_tokens + self._freed_tokens)
        if lack_sequences > 0:
            at = max(at, bisect_left(self._sequences, lack_sequences + self._freed_sequences))
        if at < len(self._at):
            return max(0.0, self._at[at] - now)
        behind = len(self._new)
        if behind and lack_tokens + self._freed_tokens <= self._tokens[-1] + self._new_tokens:
            return max(0.0, self._at[-1] - now)
        return None


def _ends(
    charges: list[Charge], budget: ReplicaBudget, outputs: OutputModel, pace: float, now: float
) -> list[tuple[float, float, float]]:
    """Return instants at which tokens and sequences are expected back, two for each charge, none before `now`."""
    prefills = prefill_ends(charges, budget, now)
    ends = []
    for place, charge in enumerate(charges):
        tokens = 0.5 * charge.reservation.total_tokens
        sequences = 0.5 * charge.reservation.sequences
        if charge.release_at is not None:
            first = second = max(charge.release_at, now)
        else:
            started = prefills[charge.key] if charge.first_token_at is None else charge.first_token_at
            produced = max(0.0, now - started) / pace
            ceiling = charge.output_ceiling_tokens
            if produced >= ceiling:
                first = second = now + max(1.0, produced - ceiling) * pace
            elif charge.reservation.sequences > 1:
                first = second = started + ceiling * pace
            else:
                quantile = (0.5 + place * GOLDEN_RATIO) % 1.0
                first = started + outputs.length_tokens(charge.lane, produced, ceiling, quantile) * pace
                second = started + outputs.length_tokens(charge.lane, produced, ceiling, 1.0 - quantile) * pace
        ends.append((first, tokens, sequences))
        ends.append((second, tokens, sequences))
    return ends
