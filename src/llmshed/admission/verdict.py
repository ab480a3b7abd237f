"""The outcome of one admission decision, with every number that it rests on."""

from dataclasses import dataclass
from enum import StrEnum

from llmshed.admission.budget import Equation, Reservation
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, Lane, PriorityClass


class Decision(StrEnum):
    """What is to happen with a request; `QUEUE` is reserved for pools that let work wait."""

    ADMIT = "admit"
    QUEUE = "queue"
    REFUSE = "refuse"


class Advice(StrEnum):
    """What a caller can do about a permanent refusal, for machines; the sentence stands in `Verdict.detail`."""

    SUMMARISE = "summarise"
    SPLIT = "split"
    LOWER_OUTPUT = "lower_output"
    DEDICATED_POOL = "dedicated_pool"


@dataclass(frozen=True, slots=True)
class AcceptedMaximums:
    """The limits told to a refused caller, in tokens; None is no bound.

    They are those of the lane that the classifier chose, or of one that the model's pools take if they do not take it.
    """

    max_input_tokens: int | None
    max_output_tokens: int | None
    max_total_tokens: int | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """One decision and its grounds.

    Args:
        decision: what is to happen.
        reason: why not, for a refusal; None otherwise.
        lane: lane that the request was classified into; None when it was refused before that.
        intent: intent in force after the tenant's rights were applied; None as for `lane`.
        priority_class: class in force, likewise.
        output_ceiling_tokens: ceiling of each sequence, to be written on the wire; None as for `lane`.
        reservation: what the request charges while it runs; None as for `lane`.
        equation: the replica's terms that decided, before this request was charged; None when no replica was asked.
        replica: name of the replica chosen, or of the one whose terms bind.
        pool: name of its pool.
        profile: profile behind the replica's budget.
        maximums: the accepted maximums.
        retry_after_seconds: conservative wait until the binding term clears; None where a retry is useless or unknown.
        detail: why not, as a sentence with the numbers that bind; empty for an admission, whose terms say it all.
        advice: what the caller can change, for permanent refusals.
    """

    decision: Decision
    reason: Reason | None = None
    lane: Lane | None = None
    intent: Intent | None = None
    priority_class: PriorityClass | None = None
    output_ceiling_tokens: int | None = None
    reservation: Reservation | None = None
    equation: Equation | None = None
    replica: str | None = None
    pool: str | None = None
    profile: str | None = None
    maximums: AcceptedMaximums | None = None
    retry_after_seconds: float | None = None
    detail: str = ""
    advice: tuple[Advice, ...] = ()

    @property
    def status(self) -> int:
        """Return the HTTP status of this outcome: 200, or that of the reason."""
        return 200 if self.reason is None else self.reason.row.status
