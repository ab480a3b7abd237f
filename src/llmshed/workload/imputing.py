"""True lengths of logged requests: those that were seen, and guesses for the others.

- A finished answer below its ceiling has the length that was seen.
- One that ended at its ceiling is at least that long; its length is drawn from longer answers.
- One whose client left after k tokens ends there: that client wanted no more, under whatever configuration.
- One that failed after k tokens is longer than k.
- A refused one, or one that nobody tells the length of, is drawn from answers of like requests: an input and a ceiling
  in force of the same powers of two, in the same lane. If it is drawn to reach its ceiling, how far it would go beyond
  is drawn from the answers that had room.
"""

from typing import TYPE_CHECKING, NamedTuple

from llmshed.workload.lengths import LengthImputer
from llmshed.workload.logged import LoggedEnding, LoggedRequest

if TYPE_CHECKING:
    from random import Random


class TrueLength(NamedTuple):
    """Output tokens of each sequence of a request, at least 1, and whether they are a guess."""

    tokens: int
    imputed: bool


class LoggedLengths:
    """Lengths of answers by like requests; observe first, then ask.

    Args:
        rng: what the draws come from.
    """

    def __init__(self, rng: "Random") -> None:
        self._seen = LengthImputer(rng)
        self._whole = LengthImputer(rng)

    def observe(self, request: LoggedRequest) -> None:
        """Count a finished answer: up to its ceiling among all, and as a whole where it ended by itself."""
        tokens = request.output_tokens_each
        if request.ending is not LoggedEnding.FINISHED or tokens == 0:
            return
        if _reached_ceiling(request):
            self._seen.observe(request.input_tokens_each, tokens + 1, _kind(request))
        else:
            self._seen.observe(request.input_tokens_each, tokens, _kind(request))
            self._whole.observe(request.input_tokens_each, tokens, request.lane.value)

    def true_length(self, request: LoggedRequest) -> TrueLength | None:
        """Return where the model would stop in each sequence; None while nothing was observed to guess from."""
        tokens = request.output_tokens_each
        if tokens and request.ending is LoggedEnding.CANCELLED:
            return TrueLength(tokens, imputed=False)
        if tokens and request.ending is LoggedEnding.FINISHED:
            if _reached_ceiling(request):
                return TrueLength(self._beyond(request, tokens), imputed=True)
            return TrueLength(tokens, imputed=False)
        drawn = self._seen.impute(request.input_tokens_each, _kind(request), tokens)
        if drawn is None:
            return None
        ceiling = request.ceiling_tokens
        if ceiling is not None and drawn > ceiling:
            drawn = self._beyond(request, ceiling)
        return TrueLength(drawn, imputed=True)

    def _beyond(self, request: LoggedRequest, tokens: int) -> int:
        """Return a length above `tokens`, by one where no longer answer was seen."""
        return self._whole.impute(request.input_tokens_each, request.lane.value, tokens) or tokens + 1


def _reached_ceiling(request: LoggedRequest) -> bool:
    return request.ceiling_tokens is not None and request.output_tokens_each >= request.ceiling_tokens


def _kind(request: LoggedRequest) -> str:
    return f"{request.lane.value}/{(request.ceiling_tokens or 0).bit_length()}"
