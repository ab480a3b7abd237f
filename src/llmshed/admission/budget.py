"""The admission equation with its numbers, so that every decision can be printed as it was taken."""

from typing import NamedTuple


def overrun_tokens(ceiling_tokens: int, chunk_tokens: int) -> int:
    """Return how far an engine may generate beyond a ceiling that it splits into chunks.

    TGI >= 3.1.1 checks a ceiling above 1,024 only at multiples of 1,024, so 1,500 may become 2,048. A ceiling within
    one chunk is kept exactly, as is every ceiling when `chunk_tokens` is 0.
    """
    if chunk_tokens == 0 or ceiling_tokens <= chunk_tokens:
        return 0
    return -ceiling_tokens % chunk_tokens


class Reservation(NamedTuple):
    """R, in tokens, as a sum of its three terms over all sequences of a request."""

    input_tokens: int
    output_tokens: int
    overrun_tokens: int
    sequences: int

    @property
    def total_tokens(self) -> int:
        """Return R = input + output ceiling + overrun, over all sequences."""
        return self.input_tokens + self.output_tokens + self.overrun_tokens

    @property
    def most_output_tokens(self) -> int:
        """Return what all sequences may generate at most, the engine's overrun included."""
        return self.output_tokens + self.overrun_tokens


class Equation(NamedTuple):
    """H = G - gG - A - Q of one replica, and its sequence seats, at one instant; all in tokens or sequences."""

    gross_ceiling_tokens: int
    guard_band_tokens: int
    active_tokens: int
    queued_tokens: int
    active_sequences: int
    hard_cap_sequences: int

    @property
    def safe_budget_tokens(self) -> int:
        """Return B, what policy may lend."""
        return self.gross_ceiling_tokens - self.guard_band_tokens

    @property
    def headroom_tokens(self) -> int:
        """Return H; negative after a budget shrank under running work."""
        return self.safe_budget_tokens - self.active_tokens - self.queued_tokens

    @property
    def free_sequences(self) -> int:
        """Return the free seats; negative after the hard cap was lowered under running work."""
        return self.hard_cap_sequences - self.active_sequences

    def fits(self, reservation: Reservation) -> bool:
        """Say whether the reservation fits the headroom and its sequences the free seats."""
        return reservation.total_tokens <= self.headroom_tokens and reservation.sequences <= self.free_sequences
