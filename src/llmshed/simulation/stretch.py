"""A run of engine calls that differ in nothing but their length, kept as one value.

Symbols: the run begins at T, its first call takes d, and each further call takes g longer than the one before, since
every decoding sequence has one more token to attend to. The end of call j, counted from 1, is

    end(j) = T + j x d + g x j x (j - 1) / 2

It is always worked out from T and never summed up call by call. So it is the same number, to the last bit, however
often and whenever somebody asks.
"""

from dataclasses import dataclass, replace
from math import sqrt


@dataclass(frozen=True, slots=True)
class Stretch:
    """Engine calls that follow each other without a gap.

    Args:
        began_at: T, when the first call begins, in seconds.
        first_seconds: d, above 0.
        growth_seconds: g, at least 0.
        steps: how many calls, at least 1.
    """

    began_at: float
    first_seconds: float
    growth_seconds: float
    steps: int

    @property
    def ends_at(self) -> float:
        """Return when the last call ends."""
        return self.ended_at(self.steps)

    def ended_at(self, step: int) -> float:
        """Return when call number `step` ends, counted from 1; with 0, when the run begins."""
        return self.began_at + (step * self.first_seconds + self.growth_seconds * (step * (step - 1) // 2))

    def steps_by(self, now: float) -> int:
        """Return how many calls have ended at `now`: the largest j with `ended_at(j) <= now`, at most `steps`."""
        if now >= self.ends_at:
            return self.steps
        step = min(max(self._estimate(now - self.began_at), 0), self.steps - 1)
        # The estimate is the root of the equation above, rounded; `ended_at` decides.
        while self.ended_at(step + 1) <= now:
            step += 1
        while step > 0 and self.ended_at(step) > now:
            step -= 1
        return step

    def cut(self, steps: int) -> "Stretch":
        """Return the same run, ended after `steps` calls; one that is shorter stays as it is."""
        return self if steps >= self.steps else replace(self, steps=steps)

    def _estimate(self, elapsed_seconds: float) -> int:
        if elapsed_seconds <= 0:
            return 0
        linear = self.first_seconds - self.growth_seconds / 2
        root = sqrt(max(linear * linear + 2 * self.growth_seconds * elapsed_seconds, 0.0))
        return int(2 * elapsed_seconds / (linear + root)) if linear + root > 0 else 0
