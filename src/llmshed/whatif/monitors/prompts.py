"""Which replicas may be busy with prompts: a request that waits for one of these is not refused for want of room."""

from dataclasses import dataclass, field

from llmshed.admission.policy import ReplicaBudget
from llmshed.admission.request import Lane

WINDOW_SECONDS = 0.25
"""What a gate may let in at once, in seconds of the prefill rate."""


@dataclass(slots=True)
class _Debt:
    """Prompt tokens that a rate has not paid off yet."""

    tokens: float = 0.0
    at: float = 0.0

    def take(self, tokens: int, rate: float, now: float) -> None:
        self.tokens, self.at = self.owed(rate, now) + tokens, now

    def owed(self, rate: float, now: float) -> float:
        return max(0.0, self.tokens - rate * (now - self.at))


@dataclass(slots=True)
class Prompts:
    """The prompts that one replica was given: those without a first token, and what the rate has not paid off.

    It errs for the gate: an answer that is not streamed shows no first token, so its prompt counts until it ends, and
    bulk beside interactive work is taken to be paid off at the rate of its floor alone, its cap being no less.
    """

    inflight: dict[int, int] = field(default_factory=dict)
    _all: _Debt = field(default_factory=_Debt)
    _bulk: _Debt = field(default_factory=_Debt)

    def give(self, key: int, tokens: int, lane: Lane, budget: ReplicaBudget, now: float) -> None:
        """Note a prompt that was sent there."""
        self.inflight[key] = tokens
        rate = budget.prefill_tokens_per_second
        if rate is None:
            return
        self._all.take(tokens, rate, now)
        if lane is Lane.BULK:
            self._bulk.take(tokens, budget.bulk.prefill_floor_ratio * rate, now)

    def seen(self, key: int) -> None:
        """Note a first token, or an ending; whose prompt is not in flight is ignored."""
        self.inflight.pop(key, None)

    def keep_out(
        self, tokens: int, budget: ReplicaBudget, engine_share_seconds: float, now: float, *, beside: bool
    ) -> bool:
        """Say whether they may be why a prompt of that many tokens is not let in now.

        `beside`: whether it is bulk's where interactive work runs too.
        """
        rate = budget.prefill_tokens_per_second
        if rate is None:
            return False
        if self._all.owed(rate, now) >= WINDOW_SECONDS * rate:
            return True
        if beside and self._bulk.owed(budget.bulk.prefill_floor_ratio * rate, now) > 0:
            return True
        bounds = (budget.prefill_inflight_tokens, engine_share_seconds * rate)
        most_tokens = min(bound for bound in bounds if bound is not None)
        return bool(self.inflight) and sum(self.inflight.values()) + tokens > most_tokens
