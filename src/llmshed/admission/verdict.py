"""The outcome of one admission decision, with every number that it rests on."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from llmshed.admission.budget import Equation, Reservation
from llmshed.admission.echo import Arrival
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, Lane, PriorityClass


class Decision(StrEnum):
    """What is to happen with a request."""

    ADMIT = "admit"
    QUEUE = "queue"
    REFUSE = "refuse"


class Advice(StrEnum):
    """What a caller can do about a permanent refusal, for machines; the sentence stands in `Verdict.detail`."""

    SUMMARISE = "summarise"
    SPLIT = "split"
    LOWER_OUTPUT = "lower_output"
    DEDICATED_POOL = "dedicated_pool"


class AcceptedMaximums(NamedTuple):
    """The limits told to a refused caller, in tokens; None is no bound.

    They are those of the lane that the classifier chose, or of one that the model's pools take if they do not take it.
    """

    max_input_tokens: int | None
    max_output_tokens: int | None
    max_total_tokens: int | None


class QueueTerms(NamedTuple):
    """A lane's queue in one pool when it was asked, and its bounds."""

    requests: int
    tokens: int
    most_requests: int
    most_tokens: int
    max_residence_seconds: float


class WindowTerms(NamedTuple):
    """The prefill window of a replica when it was asked; tokens are prompt tokens that its cache does not hold.

    Args:
        tokens_per_second: rate at which prompt tokens are let in; None while prefill is not metered.
        level_tokens: what may be let in at once; negative while a long prompt is being paid off.
        inflight_tokens: dispatched and without a first token.
        inflight_limit_tokens: most of these beside a prompt that is alone; None without a bound.
        bulk_level_tokens: what the bulk cap leaves to bulk now; None while no cap acts.
        bulk_credit_tokens: what the bulk floor owes to bulk.
    """

    tokens_per_second: float | None
    level_tokens: float
    inflight_tokens: int
    inflight_limit_tokens: int | None
    bulk_level_tokens: float | None
    bulk_credit_tokens: float


class DelayTerms(NamedTuple):
    """The delay estimate of a request on one replica, term by term: docs/delay-estimate.md has the equation.

    Args:
        tokens_ahead: reserved tokens of queued work that would be served before it.
        prefill_tokens_ahead: their prompt tokens.
        release_seconds: until the release schedule gives back what it and the work ahead lack.
        prefill_seconds: until the prompts ahead are let into what higher classes leave of the prefill window.
        share: part of what comes free that higher classes leave, more than 0 and at most 1.
        factor: learnt factor of its lane and class.
        wait_seconds: the estimate, max(release / share, prefill) x factor.
        own_seconds: its own prefill and, where the whole answer is due, its expected decode.
        promised_seconds: added to Retry-After for the work that was promised room before it; 0 where none was.
    """

    tokens_ahead: int
    prefill_tokens_ahead: int
    release_seconds: float
    prefill_seconds: float
    share: float
    factor: float
    wait_seconds: float
    own_seconds: float
    promised_seconds: float = 0.0

    @property
    def prefill_binds(self) -> bool:
        """Say whether the prefill window is the later of the two terms."""
        return self.prefill_seconds > self.release_seconds / self.share


@dataclass(slots=True)
class Verdict:
    """One decision and its grounds; nobody changes one, but to make a frozen one would take three times as long.

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
        delay: the delay estimate; None where none was made.
        window: the prefill window of the replica that was asked; None where none was.
        queue: the lane's queue in the pool that was asked; None where none was.
        arrival: whether the request was seen before; None where nobody looked.
        degradations: ladder actions that change its answer, in the order of their rungs.
        rung: name of the rung in force that refuses it; None where no rung does.
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
    delay: DelayTerms | None = None
    window: WindowTerms | None = None
    queue: QueueTerms | None = None
    arrival: Arrival | None = None
    degradations: tuple[str, ...] = ()
    rung: str | None = None

    @property
    def status(self) -> int:
        """Return the HTTP status of this outcome: 200, or that of the reason."""
        return 200 if self.reason is None else self.reason.row.status
