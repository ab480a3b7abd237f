"""The gateway's own time: one process that works on requests one after the other before the gate sees them.

It also relays every token of every answer. Tokens are many and come at a steady rate, so they are work that flows in:
between two arrivals d seconds apart in which n tokens came,

    backlog = max(backlog + n x seconds per token - d, 0)

is what the second arrival waits for beside the requests before it. Tokens are not held up themselves: a gateway that
keeps up is late by less than one step's tokens.
"""

from collections import deque

from llmshed.whatif.visits import Try


class Front:
    """One server, first come first served.

    Args:
        seconds_per_request: time for each try.
        seconds_per_input_token: time for each token of its prompt, counted once however many copies run.
        seconds_per_output_token: time for each token that is relayed, of whomever.
    """

    def __init__(
        self, seconds_per_request: float, seconds_per_input_token: float, seconds_per_output_token: float
    ) -> None:
        """Start idle."""
        self._seconds_per_request = seconds_per_request
        self._seconds_per_input_token = seconds_per_input_token
        self._seconds_per_output_token = seconds_per_output_token
        self._relayed_tokens = 0.0
        self._work_seconds = 0.0
        self._free_at = 0.0
        self._line: deque[tuple[float, Try]] = deque()

    def __len__(self) -> int:
        """Return how many stand here."""
        return len(self._line)

    @property
    def next_at(self) -> float | None:
        """Return when the first in line is done; None when nobody stands here."""
        return self._line[0][0] if self._line else None

    def take(self, attempt: Try, now: float, relayed_tokens: float) -> None:
        """Put a try at the end of the line; `relayed_tokens` is how many have been produced since the beginning."""
        relaying = self._relaying_seconds(relayed_tokens)
        self._relayed_tokens = relayed_tokens
        work = self._seconds_per_request + self._seconds_per_input_token * attempt.visit.traced.input_tokens
        self._work_seconds += relaying + work
        self._free_at = max(self._free_at + relaying, now) + work
        self._line.append((self._free_at, attempt))

    def pop(self) -> Try:
        """Return the first in line, which is done."""
        return self._line.popleft()[1]

    def busy_share(self, now: float, relayed_tokens: float) -> float:
        """Return the share of the time from 0 to now in which it worked; 0 at the very beginning."""
        relaying = self._relaying_seconds(relayed_tokens)
        left = max(self._free_at + relaying - now, 0.0)
        return (self._work_seconds + relaying - left) / now if now > 0 else 0.0

    def _relaying_seconds(self, relayed_tokens: float) -> float:
        """Return the work of the tokens that have come since the last arrival."""
        return self._seconds_per_output_token * (relayed_tokens - self._relayed_tokens)
