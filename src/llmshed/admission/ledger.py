"""The reserved tokens of one replica: taken at dispatch, given back exactly once.

A charge lives through at most three phases. While the engine works on the prompt it is in `PREFILL`, after the first
token in `DECODE`; when its client left or its upstream connection was closed under a running engine it is `RELEASING`,
still part of the active tokens, until the engine has surely let go. `free` is the only way out, and the running sums
change only in `charge` and `free`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from llmshed.admission.budget import Reservation
from llmshed.admission.queueing.timeline import Timeline
from llmshed.admission.request import Lane


class Phase(Enum):
    """What the engine is doing with a charged request, as far as can be seen from outside."""

    PREFILL = "prefill"
    DECODE = "decode"
    RELEASING = "releasing"


@dataclass(slots=True)
class Charge:
    """What one request holds on one replica.

    Args:
        key: the request.
        tenant: its tenant.
        lane: its lane.
        reservation: the tokens and sequences taken.
        output_ceiling_tokens: ceiling of each sequence.
        dispatched_at: clock reading of the dispatch.
        streamed: whether the answer is a stream, which shows its first token.
        phase: see `Phase`.
        first_token_at: clock reading of the first token; None before it.
        release_at: clock reading at which a releasing charge is freed; None in the other phases.
    """

    key: int
    tenant: str
    lane: Lane
    reservation: Reservation
    output_ceiling_tokens: int
    dispatched_at: float
    streamed: bool = True
    phase: Phase = Phase.PREFILL
    first_token_at: float | None = None
    release_at: float | None = None


class Ledger:
    """All charges of one replica, with running sums that `check` recounts."""

    def __init__(self) -> None:
        """Start empty."""
        self._charges: dict[int, Charge] = {}
        self._releasing: dict[int, Charge] = {}
        self._releases = Timeline()  # when each of these is freed: a crowd that left at once costs later events nothing
        self.active_tokens = 0
        self.active_sequences = 0
        self._lane_tokens = dict.fromkeys(Lane, 0)

    def __len__(self) -> int:
        """Return the number of charges, releasing ones included."""
        return len(self._charges)

    def __contains__(self, key: int) -> bool:
        """Say whether a request holds a charge here."""
        return key in self._charges

    def __iter__(self) -> Iterator[Charge]:
        """Yield the charges in the order of their dispatch."""
        return iter(self._charges.values())

    def __getitem__(self, key: int) -> Charge:
        """Return the charge of a request that holds one here."""
        return self._charges[key]

    def tokens_of(self, lane: Lane) -> int:
        """Return the tokens that requests of one lane hold, releasing ones included."""
        return self._lane_tokens[lane]

    def charge(self, charge: Charge) -> None:
        """Take the reservation of a request that holds none here yet."""
        if charge.key in self._charges:
            raise ValueError(f"request {charge.key} is already charged")
        self._charges[charge.key] = charge
        self.active_tokens += charge.reservation.total_tokens
        self.active_sequences += charge.reservation.sequences
        self._lane_tokens[charge.lane] += charge.reservation.total_tokens

    def first_token(self, key: int, now: float) -> None:
        """Note that a request's prefill is over; a second note or one on a releasing charge changes nothing."""
        charge = self._charges[key]
        if charge.phase is Phase.PREFILL:
            charge.phase = Phase.DECODE
            charge.first_token_at = now

    def begin_release(self, key: int, release_at: float) -> None:
        """Keep a request charged until `release_at`, since the engine may still hold it."""
        charge = self._charges[key]
        charge.phase = Phase.RELEASING
        charge.release_at = release_at
        self._releasing[key] = charge
        self._releases.add(key, release_at)

    def free(self, key: int) -> Charge:
        """Give a request's reservation back: the one path on which tokens return."""
        charge = self._charges.pop(key)
        self._releasing.pop(key, None)
        self._releases.discard(key)
        self.active_tokens -= charge.reservation.total_tokens
        self.active_sequences -= charge.reservation.sequences
        self._lane_tokens[charge.lane] -= charge.reservation.total_tokens
        return charge

    def take_due(self, now: float) -> list[int]:
        """Return the requests whose release time has come, earliest first; the caller owes each its `free`."""
        return self._releases.take_due(now) if self._releasing else []

    def next_release(self) -> float | None:
        """Return the earliest release time; None when nothing is releasing."""
        return self._releases.first() if self._releasing else None

    @property
    def releasing_tokens(self) -> int:
        """Return the tokens that only wait for the engine to let go."""
        return sum(c.reservation.total_tokens for c in self._releasing.values())

    def check(self) -> list[str]:
        """Return the invariants that do not hold: sums equal the recount, nothing is negative, phases agree."""
        wrong = self._releases.check()
        tokens = sum(c.reservation.total_tokens for c in self)
        sequences = sum(c.reservation.sequences for c in self)
        if tokens != self.active_tokens:
            wrong.append(f"active_tokens is {self.active_tokens}, the charges sum to {tokens}")
        if sequences != self.active_sequences:
            wrong.append(f"active_sequences is {self.active_sequences}, the charges sum to {sequences}")
        if sum(self._lane_tokens.values()) != tokens or min(self._lane_tokens.values()) < 0:
            wrong.append(f"the lanes hold {self._lane_tokens}, the charges sum to {tokens}")
        if len(self._releases) != len(self._releasing):
            wrong.append(f"{len(self._releasing)} requests are releasing, {len(self._releases)} are timed")
        for charge in self:
            if charge.reservation.total_tokens < 0 or charge.reservation.sequences < 1:
                wrong.append(f"request {charge.key} holds {charge.reservation}")
            if (charge.phase is Phase.RELEASING) != (charge.release_at is not None):
                wrong.append(f"request {charge.key} is {charge.phase.value} with release_at {charge.release_at}")
            if (charge.phase is Phase.RELEASING) != (charge.key in self._releasing):
                wrong.append(f"request {charge.key} is {charge.phase.value} but timed otherwise")
            if charge.phase is Phase.DECODE and charge.first_token_at is None:
                wrong.append(f"request {charge.key} decodes without a first token")
        return wrong
