"""Requests drawn from the mix, and such as have run for a while already.

The problem: at one level of reserved tokens there run more sequences when small requests come together by chance than
when large ones do. Such a spell lasts as long as an answer, so a run of minutes would see few of them, and its knee
would be that of its luck. Draws are therefore stratified: of every `STRATA` requests one comes from each part of the
mix by size, in random order. What chance does beyond that is for the guard band.
"""

from bisect import bisect
from itertools import accumulate
from typing import TYPE_CHECKING

from llmshed.calibration.plan import Shape

if TYPE_CHECKING:
    from random import Random

STRATA = 16
"""Parts of the mix: few enough that even a small replica runs some of each."""


class Spread:
    """Random shares between 0 and 1, one of each sixteenth before any sixteenth comes again.

    Args:
        rng: what they are drawn from.
    """

    def __init__(self, rng: "Random") -> None:
        self._rng = rng
        self._left: list[int] = []

    def share(self) -> float:
        """Return the next one; below 1."""
        if not self._left:
            self._left = list(range(STRATA))
            self._rng.shuffle(self._left)
        return (self._left.pop() + self._rng.random()) / STRATA


class Draws:
    """An endless row of requests of the mix.

    Args:
        shapes: the mix, at least one.
        rng: what they are drawn from.
    """

    def __init__(self, shapes: tuple[Shape, ...], rng: "Random") -> None:
        self._shapes = sorted(shapes, key=lambda shape: (shape.ceiling_tokens, shape.input_tokens, shape.lane))
        self._running = list(accumulate(shape.ceiling_tokens for shape in self._shapes))
        self._fresh = Spread(rng)
        self._met = Spread(rng)
        self._done = Spread(rng)

    def fresh(self) -> Shape:
        """Return the next request."""
        return self._shapes[int(self._fresh.share() * len(self._shapes))]

    def half_done(self, max_input_tokens: int | None) -> Shape:
        """Return a request as one would find it running: part of its output is done and has become input.

        A long answer is met more often than a short one, since it runs longer, and is as likely met at any of its
        tokens. With such requests a level is steady as soon as it is reached, where fresh ones would all end together.
        The reservation is that of the whole. The prompt stays within the engine's longest.
        """
        shape = self._shapes[bisect(self._running, self._met.share() * self._running[-1])]
        done = int(self._done.share() * shape.ceiling_tokens)
        if max_input_tokens is not None:
            done = max(min(done, max_input_tokens - shape.input_tokens), 0)
        return Shape(shape.input_tokens + done, shape.ceiling_tokens - done, shape.lane)
