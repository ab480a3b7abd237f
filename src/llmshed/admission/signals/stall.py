"""Whether a replica has stopped, seen from live traffic alone.

For the requests r that run on a replica:

    q      clock reading since which nothing has come from it
    s_r    when r was sent
    P      prefill seconds of all that was sent and has not shown a first token
    e_r    seconds from then until r must say something: one decode step of a stream, all of them of a whole answer

    stalled    for some r:  now - max(q, s_r) >= max(15 s, 3 (P + e_r))

A prompt of a minute raises P, so a minute's silence behind it is no stall, whoever waits. The same holds for the prompt
of a client that left, which its engine works on unseen. An answer that is not streamed shows no end of its prefill, so
that ends as predicted, prompts one after the other.
"""

import math
from dataclasses import dataclass

LEAST_SILENCE_SECONDS = 15.0
"""Below it nothing is a stall: TGI's own keep-alive comment comes after 15 s of an engine's silence."""
STRETCH = 3.0
"""How much slower than predicted an engine may be: predictions are of a load that a profile was made at."""


@dataclass(frozen=True, slots=True)
class ExpectedWork:
    """What a request asks of a replica before it must say something.

    Args:
        sequences: how many it runs as.
        prefill_seconds: working through its prompts, alone.
        further_seconds: one decode step of a stream; all of them of a whole answer.
        streamed: whether its first token shows.
    """

    sequences: int
    prefill_seconds: float
    further_seconds: float
    streamed: bool


@dataclass(slots=True)
class _Running:
    """One request that was sent; `prefill_by` is when its prefill ends by prediction."""

    work: ExpectedWork
    sent_at: float
    prefill_by: float
    waiting: bool = True

    def prefills(self, now: float) -> bool:
        """Say whether its prefill may still go on."""
        return self.waiting and (self.work.streamed or now < self.prefill_by)


class StallDetector:
    """Follows the requests on one replica by their keys.

    `heard` and `spoke` are called for every piece of an answer, so they take no time: the next `silent_since` takes its
    own for theirs, and tells a silence shorter by at most the time between two of its calls.
    """

    def __init__(self) -> None:
        """Start with nothing running."""
        self._running: dict[int, _Running] = {}
        self._spoke = False
        self._quiet_from = -math.inf
        self._prefill_by = -math.inf
        self._gone_until = -math.inf

    @property
    def begun_sequences(self) -> int:
        """Return the sequences that run and whose answers have begun."""
        return sum(running.work.sequences for running in self._running.values() if not running.waiting)

    def sent(self, key: int, work: ExpectedWork, now: float) -> None:
        """Note that a request is on its way; one that was sent before is sent anew."""
        self._prefill_by = max(self._prefill_by, now) + work.prefill_seconds
        self._running[key] = _Running(work, now, self._prefill_by)

    def heard(self, key: int) -> None:
        """Note that data of a request's answer came."""
        self._spoke = True
        running = self._running.get(key)
        if running is not None and running.waiting:
            running.waiting = False

    def spoke(self) -> None:
        """Note an answer that is no data of a running request: an error of the engine, say."""
        self._spoke = True

    def ended(self, key: int) -> None:
        """Note that a request runs no more, for whatever reason; an unknown one changes nothing."""
        running = self._running.pop(key, None)
        if running is not None and running.waiting:
            self._gone_until = max(self._gone_until, running.prefill_by)

    def silent_since(self, now: float) -> float | None:
        """Return since when a stalled replica has said nothing; None when it is not stalled, or nothing runs there."""
        if self._spoke:
            self._spoke = False
            self._quiet_from = now
        everyone = self._running.values()
        prefill_seconds = sum(one.work.prefill_seconds for one in everyone if one.prefills(now))
        for one in everyone:
            since = max(self._quiet_from, one.sent_at, self._gone_until)
            patience = max(LEAST_SILENCE_SECONDS, STRETCH * (prefill_seconds + one.work.further_seconds))
            if now - since >= patience:
                return since
        return None
