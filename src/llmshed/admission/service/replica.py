"""A replica that work may wait for: beside its ledger the prefill window, the forecast, and what waits for it."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from llmshed.admission.budget import Reservation
from llmshed.admission.estimate.forecast import ReleaseForecast
from llmshed.admission.estimate.outputs import OutputModel
from llmshed.admission.estimate.pace import DecodePace
from llmshed.admission.ledger import Charge
from llmshed.admission.policy import ReplicaBudget, ReplicaSpec
from llmshed.admission.prefill.bulk import cap_ratio
from llmshed.admission.prefill.window import PrefillWindow
from llmshed.admission.queueing.waiting import Waiting
from llmshed.admission.replica import Replica
from llmshed.admission.request import SERVICE_RANKS, Lane
from llmshed.admission.state import ReplicaState

KEPT_FOR_INTERACTIVE_SECONDS = 60.0
"""How long after an interactive request bulk keeps to its part of the budget: about as long as its answers hold it."""


class Lack(NamedTuple):
    """What is missing in tokens and in seats."""

    tokens: int
    sequences: int


@dataclass(slots=True)
class Queued:
    """What waits with this replica as the preferred one, for one service rank."""

    requests: int = 0
    tokens: int = 0
    input_tokens: int = 0
    sequences: int = 0

    def add(self, waiting: Waiting, sign: int) -> None:
        """Count one more (`sign` 1) or one less (-1)."""
        self.requests += sign
        self.tokens += sign * waiting.total_tokens
        self.input_tokens += sign * waiting.input_tokens
        self.sequences += sign * waiting.sequences


class AwaitedReplica(Replica):
    """One replica as the controller keeps it.

    `shadow` is the one waiting request for which freed tokens accrue here: others pass only on what is left beside it.
    """

    def __init__(self, spec: ReplicaSpec, *, shared: bool, engine_share_seconds: float, now: float) -> None:
        """Start up and empty."""
        super().__init__(spec)
        self.shared = shared
        self.window = PrefillWindow(spec, shared=shared, engine_share_seconds=engine_share_seconds, now=now)
        self.pace = DecodePace()
        self.forecast = ReleaseForecast()
        self.queued = [Queued() for _ in range(SERVICE_RANKS)]
        self.shadow: Waiting | None = None
        self.interactive_at: float | None = None
        self.kv_used_ratio: float | None = None
        self.preemptions_over_budget: float | None = None

    def come_up(self, spec: ReplicaSpec) -> None:
        """Serve, with these numbers; what its metrics told before is of another time."""
        super().come_up(spec)
        self.told(None, None)

    def told(self, kv_used_ratio: float | None, preemptions_over_budget: float | None) -> None:
        """Note what its own metrics told; None where they do not."""
        self.kv_used_ratio = kv_used_ratio
        self.preemptions_over_budget = preemptions_over_budget

    def renew(self, budget: ReplicaBudget, *, shared: bool, engine_share_seconds: float, now: float) -> None:
        """Take new numbers; what runs keeps its charge."""
        self.budget = budget
        self.shared = shared
        self.window.renew(budget, shared=shared, engine_share_seconds=engine_share_seconds, now=now)

    @property
    def free_tokens(self) -> int:
        """Return the safe budget less the active tokens; negative after a budget shrank."""
        return self.budget.safe_budget_tokens - self.ledger.active_tokens

    @property
    def free_sequences(self) -> int:
        """Return the free seats; negative after the hard cap was lowered."""
        return self.budget.hard_cap_sequences - self.ledger.active_sequences

    @property
    def at_ease(self) -> bool:
        """Say whether no prompt is in flight and half of the budget is free, so that nobody need be kept out."""
        return self.window.idle and 2 * self.free_tokens >= self.budget.safe_budget_tokens

    def held_tokens(self, key: int) -> int:
        """Return what is kept from request `key` for the holder of the shadow reservation."""
        return 0 if self.shadow is None or self.shadow.key == key else self.shadow.total_tokens

    def held_sequences(self, key: int) -> int:
        """Return the seats that are kept from request `key` likewise."""
        return 0 if self.shadow is None or self.shadow.key == key else self.shadow.sequences

    def interactive_came(self, now: float) -> None:
        """Note that an interactive request arrived which could be served here, whatever became of it."""
        self.interactive_at = now
        self.window.interactive_came(now)

    def bulk_room_tokens(self, ratio: float, now: float) -> float:
        """Return what bulk may still take of that part of the safe budget.

        One request may always run alone, and nothing is kept for interactive work that has not come for a minute.
        """
        held = self.ledger.tokens_of(Lane.BULK)
        if not self.shared or held == 0:
            return float("inf")
        if self.interactive_at is None or now >= self.interactive_at + KEPT_FOR_INTERACTIVE_SECONDS:
            return float("inf")
        return ratio * self.budget.safe_budget_tokens - held

    def ahead(self, rank: int, share_of_rank: float) -> Queued:
        """Return the work that is charged here and served before a newcomer of a rank.

        Args:
            rank: the newcomer's.
            share_of_rank: part of the work of its own rank that goes before it, 0..1.
        """
        own, ahead = self.queued[rank], Queued()
        if own.requests:
            ahead.tokens = round(share_of_rank * own.tokens)
            ahead.input_tokens = round(share_of_rank * own.input_tokens)
            ahead.sequences = round(share_of_rank * own.sequences)
        for queued in self.queued[:rank]:
            if queued.requests:
                ahead.tokens += queued.tokens
                ahead.input_tokens += queued.input_tokens
                ahead.sequences += queued.sequences
        return ahead

    def take(self, charge: Charge, now: float) -> None:
        """Charge a request that is dispatched here."""
        self.ledger.charge(charge)
        self.forecast.took(charge)
        self.window.take(
            charge.key,
            charge.lane,
            charge.reservation.input_tokens,
            now,
            streamed=charge.streamed,
            output_ceiling_tokens=charge.output_ceiling_tokens,
        )

    def first_token(self, key: int, now: float) -> None:
        """Note that a request's prefill is over."""
        self.ledger.first_token(key, now)
        self.window.first_token(key, now)

    def give_back(self, key: int, now: float) -> Charge:
        """Free a request's charge: the one path on which tokens return."""
        charge = self.ledger.free(key)
        self.forecast.freed(charge)
        self.window.end(key, now)
        return charge

    def seconds_until(self, lack: Lack, before: Lack, outputs: OutputModel, now: float) -> float | None:
        """Return how long until that much more than now is free; None when the releases never give it.

        `before` is the part of the lack that work ahead takes first, and gives back in its turn.
        """
        if lack.tokens <= 0 and lack.sequences <= 0:
            return 0.0
        self.forecast.refresh(self.ledger, self.budget, outputs, self.pace, now)
        return self.forecast.seconds_until(lack.tokens, lack.sequences, now, before.tokens, before.sequences)

    @property
    def decode_seconds_per_token(self) -> float:
        """Return the learnt pace of one sequence."""
        return self.pace.seconds_per_token(self.budget)

    def state_at(self, now: float) -> ReplicaState:
        """Return a frozen snapshot."""
        bulk = self.budget.bulk
        return replace(
            self.state(),
            equation=self.equation_before(sum(queued.tokens for queued in self.queued)),
            window=self.window.terms(now),
            bulk_prefill_share=self.window.bulk_share(now),
            bulk_prefill_cap_ratio=cap_ratio(bulk, blocking=self.spec.prefill_blocks_starts) if self.shared else None,
            bulk_prefill_floor_ratio=bulk.prefill_floor_ratio if self.shared else None,
            shadow_tokens=0 if self.shadow is None else self.shadow.total_tokens,
        )

    def own_seconds(self, reservation: Reservation) -> float:
        """Return how long the request's own prefill takes here."""
        return self.window.prefill_seconds(reservation.input_tokens)
