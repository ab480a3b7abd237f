"""The figures of a review, from what a Prometheus answered."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

Key = tuple[str, ...]
Answers = Mapping[str, Mapping[Key, float]]
"""For each question its values by the labels of its row; what was not answered is absent."""

WHOLE_RATIO = 0.98
"""Of the span for which anything is known, from which on nothing is said of it."""


class Refusals(NamedTuple):
    """What was refused of a lane for one reason; `tokens` is an estimate by the lane's mean request."""

    lane: str
    reason: str
    requests: float
    tokens: float | None
    share: float | None


class Served(NamedTuple):
    """How those of a lane fared that were served; times in seconds, `good` the share that met its objectives."""

    lane: str
    requests: float
    good: float | None
    ttft_p50: float | None
    ttft_p95: float | None
    tpot_p95: float | None
    duration_p95: float | None


class Waiting(NamedTuple):
    """How long a lane waited in a pool; `starving` is the share of the time in which somebody had for over a minute."""

    lane: str
    pool: str
    oldest_seconds: float
    residence_p99_seconds: float | None
    starving: float | None


class PoolUse(NamedTuple):
    """How a pool was used, and by which lanes.

    Utilised is what was reserved of the safe budget, idle the share of the time in which nothing ran, running the
    sequences at once.
    """

    pool: str
    lanes: tuple[str, ...]
    utilised: float | None
    utilised_most: float | None
    idle: float | None
    running_mean: float | None
    running_most: float | None

    @property
    def dedicated(self) -> bool:
        """Say whether it ran one lane alone, as one does that no other may use."""
        return len(self.lanes) == 1


class Sizes(NamedTuple):
    """The requests of a lane in tokens: prompts, output that was reserved for, and output that was made."""

    lane: str
    input_mean: float | None
    input_p95: float | None
    asked_mean: float | None
    asked_p95: float | None
    used_mean: float | None
    used_p95: float | None

    @property
    def used_share(self) -> float | None:
        """Return what was made of what was reserved for output; None where one of both is not known."""
        return self.used_mean / self.asked_mean if self.used_mean is not None and self.asked_mean else None


@dataclass(frozen=True, slots=True)
class Review:
    """All figures of one span.

    Args:
        span_seconds: how long it is.
        known_share: share of it for which anything is known; None where nothing is.
        refused: by lane and reason, most first.
        would_refuse: the same of a gateway that only observes.
        served: by lane.
        waiting: by lane and pool, longest first.
        pools: by pool.
        sizes: by lane.
        profiles: versions of the profiles behind the budgets.
        unread: questions that were not answered, and why.
    """

    span_seconds: float
    known_share: float | None
    refused: tuple[Refusals, ...]
    would_refuse: tuple[Refusals, ...]
    served: tuple[Served, ...]
    waiting: tuple[Waiting, ...]
    pools: tuple[PoolUse, ...]
    sizes: tuple[Sizes, ...]
    profiles: tuple[str, ...]
    unread: Mapping[str, str]

    @property
    def is_empty(self) -> bool:
        """Say whether nothing at all is known."""
        return not (self.served or self.refused or self.pools or self.waiting or self.would_refuse)

    @property
    def refused_tokens(self) -> float | None:
        """Return the estimate of all tokens that were refused; None where a lane's size is not known."""
        tokens = [one.tokens for one in self.refused]
        return None if None in tokens else sum(one for one in tokens if one is not None)


def review_of(answers: Answers, unread: Mapping[str, str], span_seconds: float, step_seconds: float) -> Review:
    """Return the figures that the answers come to.

    Args:
        answers: by question.
        unread: questions without an answer, and why.
        span_seconds: the span that was asked for.
        step_seconds: between two looks at what holds for a part of the time.
    """
    known = answers.get("known", {}).get(())
    lanes = sorted({key[0] for name in ("arrived", "input_mean") for key in answers.get(name, {})})
    pools = sorted({key[0] for name in ("utilised", "idle") for key in answers.get(name, {})})
    return Review(
        span_seconds=span_seconds,
        known_share=None if known is None else min(1.0, known * step_seconds / span_seconds),
        refused=_refusals(answers, "refused"),
        would_refuse=_refusals(answers, "would_refuse"),
        served=tuple(_served(answers, lane) for lane in lanes if _of(answers, "served", lane)),
        waiting=_waiting(answers),
        pools=tuple(_pool(answers, pool) for pool in pools),
        sizes=tuple(_sizes(answers, lane) for lane in lanes if lane != "none"),
        profiles=tuple(sorted(key[0] for key in answers.get("profiles", {}))),
        unread=unread,
    )


def _of(answers: Answers, question: str, *key: str) -> float | None:
    """Return a value; what is no number is not known."""
    value = answers.get(question, {}).get(key)
    return None if value is None or not math.isfinite(value) else value


def _refusals(answers: Answers, question: str) -> tuple[Refusals, ...]:
    found = []
    for (lane, reason), requests in answers.get(question, {}).items():
        if not math.isfinite(requests) or requests < 0.5:  # nothing but what an extrapolation left over
            continue
        prompt, asked = _of(answers, "input_mean", lane), _of(answers, "asked_mean", lane)
        tokens = None if prompt is None or asked is None else requests * (prompt + asked)
        arrived = _of(answers, "arrived", lane)
        found.append(Refusals(lane, reason, requests, tokens, min(1.0, requests / arrived) if arrived else None))
    return tuple(sorted(found, key=lambda one: (-one.requests, one.lane, one.reason)))


def _served(answers: Answers, lane: str) -> Served:
    names = ("good", "ttft_p50", "ttft_p95", "tpot_p95", "duration_p95")
    return Served(lane, _of(answers, "served", lane) or 0.0, *(_of(answers, name, lane) for name in names))


def _waiting(answers: Answers) -> tuple[Waiting, ...]:
    found = [
        Waiting(lane, pool, oldest, _of(answers, "residence_p99", lane, pool), _of(answers, "starving", lane, pool))
        for (lane, pool), oldest in answers.get("oldest_wait", {}).items()
        if math.isfinite(oldest)
    ]
    return tuple(sorted(found, key=lambda one: (-one.oldest_seconds, one.lane, one.pool)))


def _pool(answers: Answers, pool: str) -> PoolUse:
    lanes = tuple(sorted(lane for lane, where in answers.get("ran", {}) if where == pool))
    names = ("utilised", "utilised_most", "idle", "running_mean", "running_most")
    return PoolUse(pool, lanes, *(_of(answers, name, pool) for name in names))


def _sizes(answers: Answers, lane: str) -> Sizes:
    names = ("input_mean", "input_p95", "asked_mean", "asked_p95", "used_mean", "used_p95")
    return Sizes(lane, *(_of(answers, name, lane) for name in names))
