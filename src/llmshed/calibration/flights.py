"""What is in flight, and which level each request met during its life."""

from dataclasses import dataclass
from enum import Enum

from llmshed.workload.asks import Ask


class Role(Enum):
    """What an ask is sent for."""

    MIX = "mix"
    """To be judged."""
    FILL = "fill"
    """To reach a level; it is judged by nothing."""
    PROBE = "probe"
    """To tell the pace of a level long before whole answers do: a request of the mix with a short output."""


@dataclass(slots=True)
class Flight:
    """One ask in flight.

    Args:
        ask: what was sent.
        sent_at: when.
        level: level held when it was sent.
        level_seconds: integral of the held level over time, up to `sent_at`.
        role: what it was sent for.
        first_at: when its first token came; None before.
    """

    ask: Ask
    sent_at: float
    level: float
    level_seconds: float
    role: Role
    first_at: float | None = None


class Flights:
    """The asks in flight, in the order in which they were sent, and the integral of the held level.

    Invariants: the sums are those of the asks in flight.
    """

    def __init__(self) -> None:
        self._flights: dict[str, Flight] = {}
        self.reserved_tokens = 0
        self.waiting_input_tokens = 0
        """Input of those without a first token."""
        self.level = 0.0
        self._level_seconds = 0.0
        self._since = 0.0

    def __len__(self) -> int:
        """Return how many are in flight."""
        return len(self._flights)

    def ids(self) -> list[str]:
        """Return the ids in the order of sending."""
        return list(self._flights)

    def overdue(self, since: float, now: float, bounds: dict[str | None, float]) -> int:
        """Return how many judged asks that were sent from `since` on have waited beyond their lane's TTFT bound."""
        return sum(
            flight.sent_at >= since and flight.role is not Role.FILL and now - flight.sent_at > bounds[flight.ask.lane]
            for flight in self._flights.values()
            if flight.first_at is None
        )

    def hold(self, level: float, now: float) -> None:
        """Note that from now on this level is held; 0 while it is being reached."""
        self._level_seconds = self._integral(now)
        self._since, self.level = now, level

    def send(self, ask: Ask, now: float, role: Role) -> None:
        """Note an ask that is sent."""
        self._flights[ask.id] = Flight(ask, now, self.level, self._integral(now), role)
        self.reserved_tokens += ask.reserved_tokens
        self.waiting_input_tokens += ask.input_tokens

    def first_token(self, ask_id: str, now: float) -> Flight | None:
        """Note the first token of an ask; None for one that is not in flight or has had it."""
        flight = self._flights.get(ask_id)
        if flight is None or flight.first_at is not None:
            return None
        flight.first_at = now
        self.waiting_input_tokens -= flight.ask.input_tokens
        return flight

    def end(self, ask_id: str) -> Flight | None:
        """Forget an ask and return it; None for one that is not in flight."""
        flight = self._flights.pop(ask_id, None)
        if flight is None:
            return None
        self.reserved_tokens -= flight.ask.reserved_tokens
        if flight.first_at is None:
            self.waiting_input_tokens -= flight.ask.input_tokens
        return flight

    def mean_level(self, flight: Flight, now: float) -> float:
        """Return the mean level over the life of an ask that ends now."""
        seconds = now - flight.sent_at
        return (self._integral(now) - flight.level_seconds) / seconds if seconds > 0 else self.level

    def check(self) -> tuple[str, ...]:
        """Return the broken invariants, one sentence each; empty when all hold."""
        flights = self._flights.values()
        waiting = sum(flight.ask.input_tokens for flight in flights if flight.first_at is None)
        reserved = sum(flight.ask.reserved_tokens for flight in flights)
        broken = []
        if reserved != self.reserved_tokens:
            broken.append(f"{self.reserved_tokens} reserved tokens are counted, {reserved} are in flight")
        if waiting != self.waiting_input_tokens:
            broken.append(f"{self.waiting_input_tokens} waiting input tokens are counted, {waiting} are")
        return tuple(broken)

    def _integral(self, now: float) -> float:
        return self._level_seconds + self.level * (now - self._since)
