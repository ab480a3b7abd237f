"""One request that a load generator sends by its sizes alone, and what came of it.

`calibration/` decides which asks to send, `loadtest/` makes real requests of them, and samples go back. Every time is a
reading of one monotonic clock, in seconds.
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Ask:
    """What to send.

    Args:
        id: name of the ask, unique in a run.
        input_tokens: tokens of the prompt as the engine counts them, at least 1.
        ceiling_tokens: output ceiling on the wire, at least 1.
        runs_to_ceiling: whether the engine is told to ignore its end of sequence, where it can.
        lane: lane that it stands for; None when lanes play no part.
        prefix_tokens: leading tokens that it shares with all asks of its group; 0 shares nothing, so that no prefix
            cache can help.
        prefix_group: which prefix that is.
    """

    id: str
    input_tokens: int
    ceiling_tokens: int
    runs_to_ceiling: bool
    lane: str | None
    prefix_tokens: int = 0
    prefix_group: int = 0

    @property
    def reserved_tokens(self) -> int:
        """Return the reservation: input and output ceiling."""
        return self.input_tokens + self.ceiling_tokens


class Outcome(StrEnum):
    """How an ask ended."""

    FINISHED = "finished"
    """The whole answer came."""
    REFUSED = "refused"
    """The engine or the gateway said that it is busy."""
    FAILED = "failed"
    """Anything else went wrong: a connection, a status, an answer that broke off."""
    CANCELLED = "cancelled"
    """Whoever sent it closed it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What came of one ask.

    Args:
        ask: what was asked.
        planned_at: when it was due; waiting to be sent counts as waiting, so that a slow sender hides nothing.
        sent_at: when its first byte was written.
        token_times: when each event with output arrived, ascending; an event may hold several tokens. Empty: none came.
        finished_at: when its end was known.
        outcome: how it ended.
        status: HTTP status; None when none came.
        output_tokens: tokens produced, as the engine counts them.
        detail: one line for people: the reason of a refusal or an error; empty when finished.
    """

    ask: Ask
    planned_at: float
    sent_at: float
    token_times: tuple[float, ...]
    finished_at: float
    outcome: Outcome
    status: int | None
    output_tokens: int
    detail: str = ""

    @property
    def ttft_seconds(self) -> float | None:
        """Return the time to the first token, from the planned instant; None when no token came."""
        return self.token_times[0] - self.planned_at if self.token_times else None

    @property
    def itl_seconds(self) -> tuple[float, ...]:
        """Return the gaps between events with output."""
        return tuple(after - before for before, after in pairwise(self.token_times))

    @property
    def tpot_seconds(self) -> float | None:
        """Return the mean time of an output token after the first; None with fewer than two tokens or events."""
        if len(self.token_times) < 2 or self.output_tokens < 2:
            return None
        return (self.token_times[-1] - self.token_times[0]) / (self.output_tokens - 1)

    @property
    def end_to_end_seconds(self) -> float:
        """Return the time from the planned instant to the end."""
        return self.finished_at - self.planned_at
