"""What a level means in each sweep: reserved tokens, sequences, or prompt tokens a second."""

from dataclasses import dataclass, field
from typing import Protocol

from llmshed.calibration.flights import Flights
from llmshed.calibration.plan import Shape

PAID_TOKENS = 1e-6
"""Debt up to which nothing is owed: what rounding leaves."""


class Gate(Protocol):
    """Whether the next request may be sent under a level."""

    def may_send(self, shape: Shape, flights: Flights, level: float, now: float) -> bool:
        """Say whether there is room for one more now."""

    def over(self, flights: Flights, level: float) -> bool:
        """Say whether more is in flight than the level, so that it has to drain first."""

    def sent(self, shape: Shape) -> None:
        """Note that it was sent."""

    def next_at(self, level: float, now: float) -> float | None:
        """Return when time alone makes room; None when only an end does."""


@dataclass(slots=True)
class TokensGate:
    """Reserved tokens in flight; a request larger than the level goes alone."""

    def may_send(self, shape: Shape, flights: Flights, level: float, now: float) -> bool:  # noqa: ARG002 - other gates look at it
        """Say whether the reservation fits beside those in flight."""
        return not len(flights) or flights.reserved_tokens + shape.reserved_tokens <= level

    def over(self, flights: Flights, level: float) -> bool:
        """Compare reserved tokens; one alone is never too much."""
        return len(flights) > 1 and flights.reserved_tokens > level

    def sent(self, shape: Shape) -> None:
        """Note nothing."""

    def next_at(self, level: float, now: float) -> float | None:  # noqa: ARG002 - other gates look at it
        """Return None: tokens come free by ends."""
        return None


@dataclass(slots=True)
class SequencesGate:
    """Sequences in flight.

    Args:
        most_tokens: reserved tokens that are never exceeded: the ceiling that is known already.
    """

    most_tokens: float

    def may_send(self, shape: Shape, flights: Flights, level: float, now: float) -> bool:  # noqa: ARG002 - other gates look at it
        """Say whether one more sequence is within the level."""
        fits = flights.reserved_tokens + shape.reserved_tokens <= self.most_tokens
        return not len(flights) or (len(flights) < int(level) and fits)

    def over(self, flights: Flights, level: float) -> bool:
        """Compare sequences."""
        return len(flights) > max(int(level), 1)

    def sent(self, shape: Shape) -> None:
        """Note nothing."""

    def next_at(self, level: float, now: float) -> float | None:  # noqa: ARG002 - other gates look at it
        """Return None: seats come free by ends."""
        return None


@dataclass(slots=True)
class RateGate:
    """Prompt tokens a second, as the prefill window of admission lets them in when there is always more than it takes.

    A prompt goes when nothing is owed any more for those before it, so that long ones are followed by a pause.

    Args:
        most_tokens: reserved tokens that are never exceeded.
        ttft_bound_seconds: prompts are held back beyond what the level works off in this time: it is broken then.
    """

    most_tokens: float
    ttft_bound_seconds: float
    _owed_tokens: float = field(default=0.0, init=False)
    _since: float | None = field(default=None, init=False)

    def may_send(self, shape: Shape, flights: Flights, level: float, now: float) -> bool:
        """Say whether all earlier prompts are paid for, and the engine has not fallen behind."""
        if self._since is not None:
            self._owed_tokens = max(self._owed_tokens - level * (now - self._since), 0.0)
        self._since = now
        if not len(flights):
            return self._owed_tokens <= PAID_TOKENS
        fits = flights.reserved_tokens + shape.reserved_tokens <= self.most_tokens
        behind = flights.waiting_input_tokens > level * self.ttft_bound_seconds
        return self._owed_tokens <= PAID_TOKENS and fits and not behind

    def over(self, flights: Flights, level: float) -> bool:  # noqa: ARG002 - other gates look at it
        """Return False: a rate is held from the moment on that it is chosen."""
        return False

    def sent(self, shape: Shape) -> None:
        """Owe its prompt."""
        self._owed_tokens += shape.input_tokens

    def next_at(self, level: float, now: float) -> float | None:
        """Return when nothing is owed any more."""
        return now + self._owed_tokens / level if self._owed_tokens > PAID_TOKENS else None


@dataclass(slots=True)
class AdmissionGate:
    """Prompt tokens a second, under the budget and the hard cap that the sweeps found: as admission lets them in.

    Args:
        ceiling_tokens: reserved tokens in flight, at most.
        most_sequences: hard cap.
        waiting_seconds: input without a first token is at most what the rate works off in this time; one prompt may
            always go when none is on its way.
        prefill: meters the rate.
    """

    ceiling_tokens: float
    most_sequences: int
    waiting_seconds: float
    prefill: RateGate

    def may_send(self, shape: Shape, flights: Flights, level: float, now: float) -> bool:
        """Say whether budget, hard cap and prefill window let it in."""
        if len(flights) and flights.reserved_tokens + shape.reserved_tokens > self.ceiling_tokens:
            return False
        waiting = flights.waiting_input_tokens
        fits = not waiting or waiting + shape.input_tokens <= level * self.waiting_seconds
        return fits and len(flights) < self.most_sequences and self.prefill.may_send(shape, flights, level, now)

    def over(self, flights: Flights, level: float) -> bool:  # noqa: ARG002 - other gates look at it
        """Return False: a rate is held from the moment on that it is chosen."""
        return False

    def sent(self, shape: Shape) -> None:
        """Owe its prompt."""
        self.prefill.sent(shape)

    def next_at(self, level: float, now: float) -> float | None:
        """Return when the window opens."""
        return self.prefill.next_at(level, now)
