"""When reserved tokens and seats of a replica come free, as curves that are built seldom and read often.

Each charge is expected to end twice, at a low and a high quantile of the lengths that answers like it get, and gives
half of its tokens back at each. The quantiles of neighbouring charges differ by the golden ratio, so over many charges
they cover 0..1 evenly and the curve is the mean one: with a hundred answers that end at random the first comes free
long before any of them has reached its mean.

A charge of several sequences comes free when the longest ends, so its ceiling stands. One that outlived its ceiling at
the known pace is expected within as long again as it is late already: it is slow, not about to end at every instant.

Tokens come free in lumps, so the last one overshoots the need, and where only a few answers run most of the wait is for
one of them. A need for tokens is therefore read as larger by the lump in which a token of those with learnt lengths is
expected, the mean of R weighed by R; beside a hundred answers it changes nothing.

Between two rebuilds what was freed is counted as the front of the curve, wherever it stood there: the curve tells how
much comes free until when, and that much of it came. What was taken since then stands behind its end.
"""

from collections.abc import Iterable

from llmshed.admission.estimate.curve import ReleaseCurve
from llmshed.admission.estimate.outputs import OutputModel
from llmshed.admission.estimate.pace import DecodePace
from llmshed.admission.ledger import Charge
from llmshed.admission.policy import ReplicaBudget
from llmshed.admission.release import prefill_ends, prefill_seconds

REBUILD_SECONDS = 0.1
"""Age at which the curves are built anew: waits are told in tenths of a second at best."""
REBUILD_SECONDS_PER_CHARGE = 0.001
"""With many charges they may get older, so that building them, some 8 microseconds a charge, takes less than a per
cent of a core for each replica however many run there."""
REBUILD_TAKEN_RATIO = 0.25
"""They are built before that age when so much of them was taken since: an idle replica that fills within an instant is
then forecast as well, at a cost that is amortised over what was taken."""
GOLDEN_RATIO = 0.6180339887498949
"""Multiples of it, less their whole part, are spread more evenly over 0..1 than those of any other number."""


class ReleaseForecast:
    """The release curves of one replica."""

    __slots__ = (
        "_age_seconds",
        "_built_at",
        "_freed_sequences",
        "_freed_tokens",
        "_lump_tokens",
        "_new",
        "_new_tokens",
        "_sequences",
        "_tokens",
    )

    def __init__(self) -> None:
        """Start with an empty replica."""
        self._tokens = ReleaseCurve((), (), 0.0)
        self._sequences = ReleaseCurve((), (), 0.0)
        self._built_at = float("-inf")
        self._age_seconds = REBUILD_SECONDS
        self._new: dict[int, int] = {}
        self._new_tokens = 0
        self._freed_tokens = 0
        self._freed_sequences = 0
        self._lump_tokens = 0.0

    def took(self, charge: Charge) -> None:
        """Note a charge that was just taken."""
        self._new[charge.key] = charge.reservation.total_tokens
        self._new_tokens += charge.reservation.total_tokens

    def freed(self, charge: Charge) -> None:
        """Note a charge that was just given back."""
        new_tokens = self._new.pop(charge.key, None)
        if new_tokens is not None:
            self._new_tokens -= new_tokens
            return
        self._freed_tokens += charge.reservation.total_tokens
        self._freed_sequences += charge.reservation.sequences

    def refresh(
        self, charges: Iterable[Charge], budget: ReplicaBudget, outputs: OutputModel, pace: DecodePace, now: float
    ) -> None:
        """Build the curves anew if they are too old; `charges` are all of the replica in the order of dispatch."""
        grown = self._new_tokens > REBUILD_TAKEN_RATIO * self._tokens.total
        if now - self._built_at < self._age_seconds and not grown:
            return
        running = list(charges)
        seconds_per_token = pace.seconds_per_token(budget)
        ends, squares = _ends(running, budget, outputs, seconds_per_token, now)
        ends.sort()
        per_token, per_sequence = _turnovers(running, budget, outputs, seconds_per_token)
        instants = [at for at, _, _ in ends]
        self._tokens = ReleaseCurve(instants, [tokens for _, tokens, _ in ends], per_token)
        self._sequences = ReleaseCurve(instants, [sequences for _, _, sequences in ends], per_sequence)
        self._lump_tokens = squares / self._tokens.total if squares else 0.0
        self._built_at = now
        self._age_seconds = max(REBUILD_SECONDS, REBUILD_SECONDS_PER_CHARGE * len(running))
        self._new.clear()
        self._new_tokens = self._freed_tokens = self._freed_sequences = 0

    def seconds_until(
        self,
        lack_tokens: float,
        lack_sequences: float,
        now: float,
        ahead_tokens: float = 0.0,
        ahead_sequences: float = 0.0,
    ) -> float | None:
        """Return how long until that much more is free than is free now, as the curves were built: see `refresh`.

        Args:
            lack_tokens: what a request and the waiting work ahead of it need beyond what is free; <= 0 for no lack.
            lack_sequences: the seats that they lack.
            now: clock reading, in seconds.
            ahead_tokens: what of the need is that work's, which comes free again in its turn.
            ahead_sequences: its seats.

        Returns:
            Seconds, 0 for no lack; None when all that is charged would not be enough.
        """
        if lack_tokens <= 0 and lack_sequences <= 0:
            return 0.0
        tokens_at = sequences_at = float("-inf")
        if lack_tokens > 0:
            need = lack_tokens + self._freed_tokens
            most = self._tokens.total + ahead_tokens
            found = self._tokens.reached_at(max(need, min(need + self._lump_tokens, most)), ahead_tokens)
            if found is None:
                more = lack_tokens - ahead_tokens + self._freed_tokens - self._tokens.total
                found = self._tokens.end if more <= self._new_tokens else None
            if found is None:
                return None
            tokens_at = found
        if lack_sequences > 0:
            found = self._sequences.reached_at(lack_sequences + self._freed_sequences, ahead_sequences)
            found = self._sequences.end if found is None and self._new else found
            if found is None:
                return None
            sequences_at = found
        return max(0.0, tokens_at - now, sequences_at - now)


def _ends(
    charges: list[Charge], budget: ReplicaBudget, outputs: OutputModel, seconds_per_token: float, now: float
) -> tuple[list[tuple[float, float, float]], float]:
    """Return instants at which tokens and sequences are expected back, two for each charge, none before `now`.

    And the sum of the squared reservations of those whose lengths are learnt.
    """
    prefills = prefill_ends(charges, budget, now)
    ends, squares = [], 0.0
    for place, charge in enumerate(charges):
        reservation, ceiling = charge.reservation, charge.output_ceiling_tokens
        started = charge.first_token_at
        if started is None:
            started = prefills[charge.key]
        produced = (now - started) / seconds_per_token if now > started else 0.0
        if charge.release_at is not None:
            first = second = max(charge.release_at, now)
        elif produced >= ceiling:
            first = second = now + max(1.0, produced - ceiling) * seconds_per_token
        elif reservation.sequences > 1:
            first = second = started + ceiling * seconds_per_token
        else:
            low, high = outputs.lengths_tokens(charge.lane, produced, ceiling, (0.5 + place * GOLDEN_RATIO) % 1.0)
            first, second = started + low * seconds_per_token, started + high * seconds_per_token
            squares += reservation.total_tokens**2 if low != high else 0.0
        tokens, sequences = 0.5 * reservation.total_tokens, 0.5 * reservation.sequences
        ends.append((first, tokens, sequences))
        ends.append((second, tokens, sequences))
    return ends, squares


def _turnovers(
    charges: list[Charge], budget: ReplicaBudget, outputs: OutputModel, seconds_per_token: float
) -> tuple[float, float]:
    """Return the part of the charged tokens, and of the sequences, that comes free in a second while all is kept full.

    A charge stands for others like it that are held for its whole time, prefill and expected answer, one after another.
    """
    prefill_seconds_per_token = prefill_seconds(1, budget)
    decode_seconds: dict[tuple[str, int], float] = {}  # few ceilings are asked for by many
    tokens = sequences = tokens_rate = sequences_rate = 0.0
    for charge in charges:
        reservation = charge.reservation
        kind = (charge.lane, charge.output_ceiling_tokens)
        if kind not in decode_seconds:
            decode_seconds[kind] = outputs.remaining_tokens(charge.lane, 0.0, kind[1]) * seconds_per_token
        rate = 1.0 / (reservation.input_tokens * prefill_seconds_per_token + decode_seconds[kind])
        total = reservation.total_tokens
        tokens += total
        sequences += reservation.sequences
        tokens_rate += total * rate
        sequences_rate += reservation.sequences * rate
    return (tokens_rate / tokens, sequences_rate / sequences) if charges else (0.0, 0.0)
