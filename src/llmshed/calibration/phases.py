"""The sweeps one after the other, each made of what the ones before it found."""

from typing import TYPE_CHECKING

from llmshed.calibration.drawing import Draws
from llmshed.calibration.gates import AdmissionGate, RateGate, SequencesGate, TokensGate
from llmshed.calibration.plan import Plan, Shape
from llmshed.calibration.results import Phase
from llmshed.calibration.search import Confirmation, Search
from llmshed.calibration.sweep import Sweep, SweepTimes

if TYPE_CHECKING:
    from random import Random

SHARES = {Phase.KV: 0.6, Phase.PREFILL: 0.3, Phase.CAP: 0.35, Phase.CONFIRM: 0.95}
"""Part of the time that is left which a sweep may take; what it does not use is left to the others."""
FIRST_REQUESTS = 4
"""Requests of the mix with which the first sweep begins where nothing is known."""
FIRST_RATE_RATIO = 0.15
"""Part of a lone prompt's pace at which the prefill sweep begins."""
SHORT_OUTPUT_TOKENS = 32
SHORT_CONTEXT = (16, 256)
"""Input and output of the hard cap's sweep: little KV, so that sequences bind."""
WAITING_RATIO = 0.5
"""Part of the tightest TTFT bound in which the rate works off all input that waits for first tokens: the bound is to
hold for 95 of 100 and not in the mean."""
FIRST_SEQUENCES = 8.0
SETTLE_SECONDS = 2.0
MIX_SETTLE_SECONDS = 15.0
"""Time from the first request of the mix to the first that is judged; the replica fills as admission lets it."""
MIX_LEAST_SECONDS, MIX_MOST_SECONDS = 40.0, 90.0
"""How long the mix is held at a level."""


class Phases:
    """Makes sweeps.

    Args:
        plan: what is asked for.
        rng: what is drawn from.
    """

    def __init__(self, plan: Plan, rng: "Random") -> None:
        self._plan = plan
        self._rng = rng
        self.idle_tokens_per_second = 1000.0
        """Pace of a lone prompt."""
        self.ceiling_tokens: float | None = None
        """Lower bound of the KV sweep."""
        self.tokens_per_second: float | None = None
        """Lower bound of the prefill sweep."""
        self.sequences: float | None = None
        """Lower bound of the hard cap's sweep."""

    def make(self, phase: Phase, now: float, left_seconds: float) -> Sweep:
        """Return the sweep of a phase, which begins now.

        Args:
            phase: neither idle nor over.
            now: clock reading.
            left_seconds: time that is left for this sweep and all after it.
        """
        whole = SHARES[phase] * left_seconds
        match phase:
            case Phase.PREFILL:
                return self._prefill(now, whole)
            case Phase.CAP:
                return self._cap(now, whole)
            case Phase.CONFIRM:
                return self._confirm(now, whole)
            case _:
                return self._kv(now, whole)

    def _kv(self, now: float, whole: float) -> Sweep:
        mean = sum(shape.reserved_tokens for shape in self._plan.mix) / len(self._plan.mix)
        first = self._plan.first_level_tokens or FIRST_REQUESTS * mean
        search = Search(max(float(first), mean))
        return Sweep(
            self._plan, TokensGate(), Draws(self._plan.mix, self._rng), search, SweepTimes(whole), now, aged=True
        )

    def _prefill(self, now: float, whole: float) -> Sweep:
        short = tuple(
            Shape(shape.input_tokens, min(shape.ceiling_tokens, SHORT_OUTPUT_TOKENS), shape.lane)
            for shape in self._plan.mix
        )
        times = SweepTimes(whole, climb=10, narrow=20, back=12, least=4, settle=SETTLE_SECONDS)
        gate = RateGate(self._most_tokens, self._plan.tightest_ttft_seconds)
        search = Search(FIRST_RATE_RATIO * self.idle_tokens_per_second)
        return Sweep(self._plan, gate, Draws(short, self._rng), search, times, now, aged=False)

    def _cap(self, now: float, whole: float) -> Sweep:
        lane = min((shape.lane for shape in self._plan.mix), key=self._plan.tpot_bound_seconds)
        shape = Shape(*SHORT_CONTEXT, lane)
        most = max(self._most_tokens // shape.reserved_tokens, 1.0)
        times = SweepTimes(whole, climb=12, narrow=20, back=14)
        gate = SequencesGate(self._most_tokens)
        search = Search(FIRST_SEQUENCES, most)
        return Sweep(self._plan, gate, Draws((shape,), self._rng), search, times, now, aged=True)

    def _confirm(self, now: float, whole: float) -> Sweep:
        gate = AdmissionGate(
            self._most_tokens,
            int(self.sequences or 1e9),
            WAITING_RATIO * self._plan.tightest_ttft_seconds,
            RateGate(self._most_tokens, self._plan.tightest_ttft_seconds),
        )
        least, settle = min(MIX_LEAST_SECONDS, whole / 4), min(MIX_SETTLE_SECONDS, whole / 8)
        times = SweepTimes(whole, narrow=MIX_MOST_SECONDS, least=least, settle=settle)
        search = Confirmation(self.tokens_per_second or self.idle_tokens_per_second)
        return Sweep(self._plan, gate, Draws(self._plan.mix, self._rng), search, times, now, aged=False)

    @property
    def _most_tokens(self) -> float:
        return self.ceiling_tokens or 0.0
