"""Where a share that can only grow crosses a bound: isotonic regression by pooling adjacent violators.

The problem: the share of late requests is known at many levels, of each from few requests. That it does not fall as the
level rises is the one thing known of its form. The least-squares fit of a rising step function pools neighbours that
are out of order (Ayer et al., 1955); between two levels of different pools it is taken to be straight.
"""

from collections.abc import Sequence
from itertools import pairwise

Row = tuple[float, int, int]
"""A level, how many were observed there (at least 1), and how many of them were late."""


def fitted(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Return each level with the fitted share late there, never falling; rows ascend by level."""
    stack: list[tuple[int, int, int]] = []  # observed, late, rows
    for _, seen, late in rows:
        stack.append((seen, late, 1))
        while len(stack) > 1 and stack[-1][1] * stack[-2][0] < stack[-2][1] * stack[-1][0]:
            upper, lower = stack.pop(), stack.pop()
            stack.append((upper[0] + lower[0], upper[1] + lower[1], upper[2] + lower[2]))
    shares = [late / seen for seen, late, count in stack for _ in range(count)]
    return [(level, share) for (level, _, _), share in zip(rows, shares, strict=True)]


def crossing(rows: Sequence[Row], bound: float) -> tuple[float, bool]:
    """Return the level up to which the share late is at most `bound`, and whether it is above that anywhere.

    Without a level that is above it is the highest one; without one that keeps it, 0. Rows are not empty.
    """
    fit = fitted(rows)
    if fit[-1][1] <= bound:
        return fit[-1][0], False
    for (below, kept), (above, broken) in pairwise(fit):
        if kept <= bound < broken:
            return below + (above - below) * (bound - kept) / (broken - kept), True
    return 0.0, True
