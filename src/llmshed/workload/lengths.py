"""Output lengths that a trace does not hold, made up from those of like requests.

The problem: the answer of a request that was refused, failed or left was never finished, so no log tells how long it
would have been; leaving such requests out would take away the very load that was too much. Like requests are those with
an input of the same power of two and, where the caller names it, of the same kind (a lane, a tenant). A length is drawn
from the quantiles of those observed so far; of a request that had already produced k tokens, from those above k.

Requests that left early are observed by none of this, and long answers are likelier to be left: lengths made up so are
a little short. Their share is counted, so that a reader can judge.
"""

import math
from typing import TYPE_CHECKING

from llmshed.workload.sketch import QuantileSketch

if TYPE_CHECKING:
    from random import Random

ENOUGH_OBSERVED = 20
"""Fewer like requests than this are too few to draw from; then all of the kind are, then all."""
MOST_KINDS = 1024
"""Kinds told apart; further ones count as one, so that hostile names take no memory."""


class LengthImputer:
    """Observed output lengths by kind and size of input.

    Args:
        rng: what the draws come from.
    """

    def __init__(self, rng: "Random") -> None:
        self._rng = rng
        self._all = QuantileSketch()
        self._by_kind: dict[str, QuantileSketch] = {}
        self._by_likeness: dict[tuple[str, int], QuantileSketch] = {}

    def observe(self, input_tokens: int, output_tokens: int, kind: str = "") -> None:
        """Count a finished answer of at least 1 token."""
        if kind not in self._by_kind and len(self._by_kind) >= MOST_KINDS:
            kind = ""
        for sketch in (
            self._all,
            self._by_kind.setdefault(kind, QuantileSketch()),
            self._by_likeness.setdefault((kind, input_tokens.bit_length()), QuantileSketch()),
        ):
            sketch.add(output_tokens)

    def impute(self, input_tokens: int, kind: str = "", produced_tokens: int = 0) -> int | None:
        """Return a length above `produced_tokens` for an unfinished answer; None while nothing was observed."""
        candidates = (self._by_likeness.get((kind, input_tokens.bit_length())), self._by_kind.get(kind))
        enough = (sketch for sketch in candidates if sketch is not None and sketch.count >= ENOUGH_OBSERVED)
        sketch = next(enough, self._all)
        if not sketch.count:
            return None
        shorter = sketch.count * sketch.share_up_to(produced_tokens)
        drawn = math.floor(shorter + (sketch.count - shorter) * self._rng.random())
        return max(round(sketch.at_rank(min(drawn, sketch.count - 1))), produced_tokens + 1)
