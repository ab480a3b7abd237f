"""What one policy decides; the gate around it does the rest."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from llmshed.admission.events import Event
from llmshed.admission.reasons import Reason
from llmshed.admission.replica import Replica
from llmshed.whatif.gates.line import Rank
from llmshed.whatif.gates.work import Work

CONSTANT_RETRY_SECONDS = 1.0
"""Wait told by a policy that computes none: the constant that comparable systems send, where they send any."""


@dataclass(frozen=True, slots=True)
class TurnAway:
    """Why work is refused or evicted, and when its client may come again."""

    reason: Reason
    detail: str
    retry_after_seconds: float = CONSTANT_RETRY_SECONDS


class Rule(ABC):
    """One policy. Waiting work is served by rank; nothing is asked of work behind the first.

    A rule that lets nothing wait keeps `most_waiting` at 0 and answers `place` with a replica or a `TurnAway` always.
    """

    most_waiting: int = 0
    """How much work may wait; what ranks last is turned away from a full line."""

    @abstractmethod
    def place(
        self, work: Work, candidates: Sequence[Replica], behind: Iterable[Work], now: float
    ) -> Replica | TurnAway | None:
        """Return where work goes now, why it is turned away, or None to let it wait.

        Args:
            work: the first in its line, or one that just came to an empty line.
            candidates: the replicas that are up and could hold it; at least one.
            behind: what waits in the same line beside it, in order of arrival.
            now: clock reading.
        """

    def turn_away(self, work: Work, candidates: Sequence[Replica], now: float) -> TurnAway | None:  # noqa: ARG002 - rules look at what they need
        """Return why work is refused as it arrives, even if others wait before it; None for most policies."""
        return None

    def rank(self, work: Work) -> Rank:
        """Return the place of waiting work; by default in order of arrival."""
        return (work.order,)

    def waits_until(self, work: Work) -> float:  # noqa: ARG002 - rules look at what they need
        """Return when the wait of work that arrived is over; infinity for never."""
        return inf

    def late(self, work: Work) -> TurnAway:
        """Return why work is evicted whose wait is over."""
        raise NotImplementedError(f"request {work.key} waits, though this policy lets nothing wait")

    def displaced(self, work: Work) -> TurnAway:
        """Return why work is turned away from a full line."""
        raise NotImplementedError(f"request {work.key} waits, though this policy lets nothing wait")

    def observe(self, event: Event, now: float) -> None:  # noqa: B027 - most rules read the books alone
        """Learn of an event before anything is done about it."""

    def sent(self, work: Work, replica: Replica, now: float) -> None:  # noqa: B027 - as `observe`
        """Learn that work was sent to a replica."""

    def next_look(self, now: float, first: Iterable[Work]) -> float | None:  # noqa: ARG002 - rules look at what they need
        """Return when to look again though nothing happened, after `now`; `first` are the first of each line."""
        return None

    def check(self) -> list[str]:
        """Return the rule's own invariants that do not hold, as sentences."""
        return []


def least_outstanding(replicas: Iterable[Replica]) -> Replica:
    """Return the replica with the fewest requests that were sent and not answered, then the first name.

    Raises:
        ValueError: there is none.
    """
    return min(replicas, key=lambda replica: (len(replica.ledger), replica.spec.name))
