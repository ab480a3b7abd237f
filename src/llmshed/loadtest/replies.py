"""What an answer tells beside its tokens: the lane, why it was refused, and when to come back."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from llmshed.workload.asks import Outcome, Sample
from llmshed.workload.clients import Refusal

LOST_STATUS = 503
"""What a client makes of a connection that never answered: somebody who is away for now."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the head of an answer says; None where it says nothing.

    Args:
        lane: lane that a gateway put the request into.
        reason: a gateway's word for why it was refused.
        retry_after_seconds: wait of `retry-after-ms`, else of `Retry-After` in seconds.
        should_retry: `x-should-retry`.
        input_tokens: input tokens as the gateway counted them.
    """

    lane: str | None = None
    reason: str | None = None
    retry_after_seconds: float | None = None
    should_retry: bool | None = None
    input_tokens: int | None = None


NOTHING_TOLD = Told()
_NO_LANE = "none"


def read_head(headers: Mapping[str, str]) -> Told:
    """Read the headers of an answer, whoever sent them; what cannot be read counts as not said."""
    lane = headers.get("x-llmshed-lane")
    return Told(
        lane=None if lane == _NO_LANE else lane,
        reason=headers.get("x-llmshed-reason"),
        retry_after_seconds=_retry_after(headers),
        should_retry={"true": True, "false": False}.get(headers.get("x-should-retry", "")),
        input_tokens=_count(headers.get("x-llmshed-input-tokens")),
    )


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one try.

    Args:
        sample: its times and its ending.
        told: what its head said.
        tries: how often the request had been sent before.
        reason: one word for its ending, for tables: empty where it finished.
    """

    sample: Sample
    told: Told
    tries: int
    reason: str

    @property
    def lane(self) -> str | None:
        """Return the lane that it counts in: the gateway's, else the one that it stood for; None without lanes."""
        return self.told.lane or self.sample.ask.lane

    def refusal(self) -> Refusal | None:
        """Return what makes a client think of another try; None for an answer, or one whose stream had begun."""
        sample = self.sample
        if sample.outcome in {Outcome.FINISHED, Outcome.CANCELLED} or sample.token_times:
            return None
        status = LOST_STATUS if sample.status is None or sample.status < 400 else sample.status
        return Refusal(status, self.told.retry_after_seconds, self.told.should_retry)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    milliseconds = _number(headers.get("retry-after-ms"))
    return milliseconds / 1000 if milliseconds is not None else _number(headers.get("retry-after"))


def _number(text: str | None) -> float | None:
    """Return a number that is finite and not negative; a date, which our gateway never sends, counts as not said."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 10 else None
