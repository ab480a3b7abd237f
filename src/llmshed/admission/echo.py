"""First arrivals apart from their repeats: what was told to whom, so that admission does not measure its own echo.

A refused client sends the same request again, and a refused fleet sends everything again. A repeat must be known for
two reasons: demand is what arrives for the first time, and a client that comes before the wait it was told must not
leave its place better than one that keeps to it.

    u            told instant: refusal + estimate, before the jitter, which only adds to it
    early        a repeat at now < u; u - now remains
    amplification = all arrivals / first arrivals

A request is known by its fingerprint, so two requests of one tenant with the same body and wishes are taken for one. A
twin of a refused request is then told what remains of its twin's wait. It is as large, in the same lane and of the same
tenant, so that wait is the best estimate for it too, and it is never told more than a first arrival was. What it can
lose is room that came free sooner than expected, for the rest of that wait. Once either of them is served the
fingerprint is forgotten: the next one is a first arrival.
"""

from collections import OrderedDict
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from llmshed.admission.reasons import Reason
from llmshed.admission.request import Request

MOST_REMEMBERED = 100_000
"""Refusals that are remembered: about 30 MB."""
KNOWN_FOR_SECONDS = 120.0
"""How long after its told instant, plus the wait once more, a refusal is remembered.

The jitter adds at most the wait once more unless it was set higher, and clients with a backoff of their own (urllib3's
longest is 120 s) come later than they were told.
"""


class Arrival(StrEnum):
    """Whether a request was seen before."""

    FIRST = "first"
    DECLARED = "declared"
    """The client says that it is a repeat; what it repeats is not remembered here."""
    REPEAT = "repeat"
    """It was refused before, and comes when it was told or later."""
    EARLY = "early"
    """It was refused before, and comes before the wait that it was told is over."""
    UNCHANGED = "unchanged_413"
    """It was refused for good before, and comes unchanged: known where bodies are read, by no entry of the book."""


class Echo(NamedTuple):
    """What is known of an arrival.

    Args:
        arrival: its kind.
        remaining_seconds: what remains of the wait that it was told, above 0 if early; else 0.
        reason: why it was refused before, if early; else None.
    """

    arrival: Arrival
    remaining_seconds: float = 0.0
    reason: Reason | None = None


class _Told(NamedTuple):
    """One refusal: its reason, the told instant, and when it is forgotten."""

    reason: Reason
    until: float
    forget_at: float


class EchoBook:
    """The refusals of the last minutes, by fingerprint; every operation takes constant time."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        """Remember up to `most` refusals, at least 1, those that were told longest ago forgotten first."""
        self._most = most
        self._told: OrderedDict[str, _Told] = OrderedDict()
        self._totals = dict.fromkeys(Arrival, 0)

    def __len__(self) -> int:
        """Return how many refusals are remembered."""
        return len(self._told)

    @property
    def totals(self) -> Mapping[Arrival, int]:
        """Return how many requests arrived, by kind."""
        return self._totals

    def look(self, request: Request, now: float) -> Echo:
        """Return what a request's arrival would be, counting nothing."""
        told = None if request.fingerprint is None else self._told.get(request.fingerprint)
        if told is None or told.forget_at <= now:
            return Echo(Arrival.DECLARED if request.declared_repeats > 0 else Arrival.FIRST)
        if now < told.until:
            return Echo(Arrival.EARLY, told.until - now, told.reason)
        return Echo(Arrival.REPEAT)

    def arrival(self, request: Request, now: float) -> Echo:
        """Count one arrival and return what it is; to be asked once for each request."""
        echo = self.look(request, now)
        self._totals[echo.arrival] += 1
        return echo

    def refused(
        self, fingerprint: str | None, reason: Reason, told_until: float, now: float, *, promised: bool = True
    ) -> None:
        """Note a refusal that told a wait, whose estimate ends at `told_until`; the newest one counts.

        An early repeat that is refused with what remains of its wait is not noted again. With `deadline_infeasible` for
        the request's own deadline the same body may come back at once, with more time: it is known but never early. Nor
        is it after a 503, nor where nothing was `promised` since a rung refused it: there is no room that it could take
        before its turn. It is known all the same for as long as it was told, since the same work is no new demand.
        """
        if fingerprint is None:
            return
        at_once = reason is Reason.DEADLINE_INFEASIBLE or reason.row.status == 503
        told = now if at_once else max(told_until, now)
        until = told if promised else now
        self._told[fingerprint] = _Told(reason, until, told + (told - now) + KNOWN_FOR_SECONDS)
        self._told.move_to_end(fingerprint)
        if len(self._told) > self._most:
            self._told.popitem(last=False)
        self._forget_one(now)

    def served(self, fingerprint: str | None) -> None:
        """Forget a request that was dispatched; the next with its fingerprint is a first arrival."""
        if fingerprint is not None:
            self._told.pop(fingerprint, None)

    def _forget_one(self, now: float) -> None:
        """Drop the oldest refusal if nobody comes back for it any more.

        One for each that is noted is enough for the book to shrink to what still matters, and never takes long.
        """
        oldest = next(iter(self._told.values()))
        if oldest.forget_at <= now:
            self._told.popitem(last=False)

    def check(self) -> list[str]:
        """Return the invariants that do not hold: the book is within its bound."""
        return [f"{len(self)} refusals are remembered, at most {self._most} may be"] if len(self) > self._most else []
