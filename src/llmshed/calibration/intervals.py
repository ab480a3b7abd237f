"""What a count says about a share: the interval of E. B. Wilson (1927), which holds for small counts too."""

from math import sqrt

ALLOWED_LATE_RATIO = 0.05
"""Share of requests that may be late where an objective is kept: its 95th percentile is within the bound."""
SURE = 1.28
"""Standard deviations for one-sided verdicts that are wrong in one of ten cases; later levels put that right."""


def share_interval(late: int, count: int, deviations: float = SURE) -> tuple[float, float]:
    """Return the lower and upper bound of the true share when `late` of `count` were; 0 to 1 when none were counted."""
    if not count:
        return 0.0, 1.0
    square = deviations * deviations
    middle = (late + square / 2) / (count + square)
    half = deviations / (count + square) * sqrt(late * (count - late) / count + square / 4)
    return max(middle - half, 0.0), min(middle + half, 1.0)
