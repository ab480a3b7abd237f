"""One replica as the controller keeps it: what it is, what it may lend now, and who holds what."""

from collections import Counter

from llmshed.admission.budget import Equation, Reservation, overrun_tokens
from llmshed.admission.ledger import Charge, Ledger
from llmshed.admission.policy import ReplicaBudget, ReplicaSpec
from llmshed.admission.release import prefill_ends
from llmshed.admission.request import Lane, Request
from llmshed.admission.state import LaneUse, ReplicaState


class Replica:
    """Ledger and budget in force of one replica.

    `budget` may differ from `spec.budget` while the replica is derated; `spec.budget` says what it may ever lend.
    `queued_tokens` is work that is known to wait for it beside what the caller keeps.
    """

    def __init__(self, spec: ReplicaSpec) -> None:
        """Start up and empty."""
        self.spec = spec
        self.budget: ReplicaBudget = spec.budget
        self.up = True
        self.removed = False
        self.queued_tokens = 0
        self.ledger = Ledger()

    def come_up(self, spec: ReplicaSpec) -> None:
        """Serve, with these numbers; running charges stay as they are."""
        self.spec = spec
        self.budget = spec.budget
        self.up = True
        self.removed = False

    def equation(self) -> Equation:
        """Return the terms of the admission equation now."""
        return self.equation_before(0)

    def equation_before(self, queued_tokens: int) -> Equation:
        """Return the terms of the admission equation behind that much queued work."""
        budget, ledger = self.budget, self.ledger
        return Equation(
            gross_ceiling_tokens=budget.gross_ceiling_tokens,
            guard_band_tokens=budget.guard_band_tokens,
            active_tokens=ledger.active_tokens,
            queued_tokens=queued_tokens + self.queued_tokens,
            active_sequences=ledger.active_sequences,
            hard_cap_sequences=budget.hard_cap_sequences,
        )

    def reservation(self, request: Request, ceiling_tokens: int) -> Reservation:
        """Return R of a request on this replica.

        The overrun of a sequence is bounded by the context: an engine ends a sequence at its `max_total_tokens`.
        """
        overrun, beyond = 0, overrun_tokens(ceiling_tokens, self.spec.overrun_chunk_tokens)
        if beyond:
            for prompt_tokens in request.prompt_tokens:
                room = self.spec.limits.max_total_tokens - prompt_tokens - ceiling_tokens
                overrun += max(0, min(room, beyond))
        sequences = request.sequences
        return Reservation(request.input_tokens, sequences * ceiling_tokens, overrun * request.copies, sequences)

    def holds_ever(self, reservation: Reservation) -> bool:
        """Say whether the reservation would fit if the replica were empty and not derated."""
        ever = self.spec.budget
        return reservation.total_tokens <= ever.safe_budget_tokens and reservation.sequences <= ever.hard_cap_sequences

    def release_time(self, charge: Charge, now: float) -> float:
        """Return when a charge whose client left is freed.

        A closed socket is not a released engine: it notices at its next token, so before the first token not until the
        prefill ends.
        """
        grace_end = now + self.budget.release_grace_seconds
        if charge.first_token_at is not None:
            return grace_end
        return max(grace_end, prefill_ends(self.ledger, self.budget, now)[charge.key])

    def state(self) -> ReplicaState:
        """Return a frozen snapshot."""
        requests, sequences, tokens = Counter[Lane](), Counter[Lane](), Counter[Lane]()
        for charge in self.ledger:
            requests[charge.lane] += 1
            sequences[charge.lane] += charge.reservation.sequences
            tokens[charge.lane] += charge.reservation.total_tokens
        return ReplicaState(
            name=self.spec.name,
            pool=self.spec.pool,
            up=self.up,
            profile=self.spec.profile,
            equation=self.equation(),
            releasing_tokens=self.ledger.releasing_tokens,
            lanes={lane: LaneUse(requests[lane], sequences[lane], tokens[lane]) for lane in Lane if requests[lane]},
        )
