"""What a reader is given beside the bytes, and what it leaves beside the requests."""

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from llmshed.errors import TraceError
from llmshed.workload.lengths import LengthImputer
from llmshed.workload.readers.fields import LAST_SECONDS

if TYPE_CHECKING:
    from random import Random


class Reading:
    """One passage over one trace; a second passage needs a new one, with the generator seeded alike.

    Args:
        rng: what lengths and arrivals that the trace lacks are drawn from.
        rate_per_second: requests a second, for traces that tell distributions without a rate; None elsewhere.
        duration_seconds: how much traffic to make from a distribution; None for as much as it covers.
        companion: content of the second file, for formats of two; None elsewhere.
        fold_retries: whether the retries of a log are folded into first tries, since a client model makes them anew.

    Attributes:
        skipped: rows that gave no request, by why.
        lengths: what lengths were observed, for those that are missing; `true_length` is the common rule on it.

    Raises:
        ValueError: a rate or duration is not positive and finite.
    """

    def __init__(
        self,
        rng: "Random",
        *,
        rate_per_second: float | None = None,
        duration_seconds: float | None = None,
        companion: Iterable[bytes] | None = None,
        fold_retries: bool = False,
    ) -> None:
        for told in (rate_per_second, duration_seconds):
            if told is not None and not 0 < told < math.inf:
                raise ValueError(f"a rate or duration is more than 0 and finite, not {told}")
        self.rng = rng
        self.rate_per_second = rate_per_second
        self.duration_seconds = duration_seconds
        self.companion = companion
        self.fold_retries = fold_retries
        self.skipped: Counter[str] = Counter()
        self.lengths = LengthImputer(rng)

    def true_length(self, input_tokens: int, output_tokens: int) -> tuple[int, bool] | None:
        """Return where the model would stop, and whether that is a guess; None when the row tells no request.

        A row without input tells of nothing that was sent. One without output tells of a request that failed: it came
        all the same, so it stays, with a length like those of its like; without any seen yet it is skipped.
        """
        if input_tokens == 0:
            self.skipped["no input tokens"] += 1
            return None
        if output_tokens > 0:
            self.lengths.observe(input_tokens, output_tokens)
            return output_tokens, False
        imputed = self.lengths.impute(input_tokens)
        if imputed is None:
            self.skipped["no output tokens, and none seen before to guess from"] += 1
            return None
        return imputed, True


class Elapsed:
    """Clock readings to seconds since the first of them, which never go back."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._last = 0

    def since_first(self, nanoseconds: int, line: int) -> float:
        """Return the seconds since the first reading, exact to the nanosecond.

        Raises:
            TraceError: the reading is before the one above it, or `LAST_SECONDS` after the first.
        """
        if self._first is None:
            self._first = self._last = nanoseconds
        if nanoseconds < self._last:
            back = (self._last - nanoseconds) / 1e9
            raise TraceError(f"arrives {back:g} s before the request above it; sort the trace by arrival", line)
        self._last = nanoseconds
        elapsed = (nanoseconds - self._first) / 1e9
        if elapsed > LAST_SECONDS:
            raise TraceError(f"arrives {elapsed:g} s after the first request; {LAST_SECONDS:g} s are accepted", line)
        return elapsed
