"""What the core tells of itself: a frozen snapshot for `/admin/state`, metrics and `classify`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from llmshed.admission.budget import Equation
from llmshed.admission.echo import Arrival
from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.verdict import WindowTerms
from llmshed.ladder.standing import Standing


@dataclass(frozen=True, slots=True)
class LaneUse:
    """What one lane holds on one replica."""

    requests: int
    sequences: int
    reserved_tokens: int


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """One replica at one instant.

    Args:
        name: the replica.
        pool: its pool.
        up: whether it takes new work.
        profile: name and version of the profile behind its budget.
        equation: the terms of admission, with all that waits for it as queued.
        releasing_tokens: those of the active tokens that gone clients hold.
        lanes: what each lane holds.
        window: its prefill window.
        bulk_prefill_share: part of the prompt tokens of the last minute that were bulk's; None of none.
        bulk_prefill_cap_ratio: most of the prefill rate for bulk while interactive work comes, as in force; None where
            the two do not meet.
        bulk_prefill_floor_ratio: least of it while bulk has work; None likewise.
        shadow_tokens: reservation of the waiting request for which freed tokens accrue; 0 without one.
    """

    name: str
    pool: str
    up: bool
    profile: str
    equation: Equation
    releasing_tokens: int
    lanes: Mapping[Lane, LaneUse]
    window: WindowTerms | None = None
    bulk_prefill_share: float | None = None
    bulk_prefill_cap_ratio: float | None = None
    bulk_prefill_floor_ratio: float | None = None
    shadow_tokens: int = 0


@dataclass(frozen=True, slots=True)
class QueueState:
    """What waits in one lane of a pool, and in one of its classes."""

    lane: Lane
    priority_class: PriorityClass
    requests: int
    tokens: int
    input_tokens: int


@dataclass(frozen=True, slots=True)
class PoolState:
    """The queues of one pool at one instant.

    Args:
        name: the pool.
        queues: what waits, by lane and class; those in which nobody waits too.
        oldest_age_seconds: how long the oldest of a lane has waited; 0 while nobody does.
        factors: learnt factor of the delay estimate, by service rank.
        promised_seconds: time until the room that refused work was promised has come free, by service rank.
        ghosts: refused requests that are followed now.
        ghosts_fitted: those whose following ended because they would have fit.
        ghosts_given_up: those whose following ended because no estimate could have covered their wait any more.
        ladder: where it stands on its ladder; None without one.
    """

    name: str
    queues: tuple[QueueState, ...]
    oldest_age_seconds: Mapping[Lane, float]
    factors: tuple[float, ...]
    promised_seconds: tuple[float, ...]
    ghosts: int
    ghosts_fitted: int
    ghosts_given_up: int
    ladder: Standing | None = None


@dataclass(frozen=True, slots=True)
class ControllerState:
    """All replicas, in the order in which they came up, and all pools; how many requests arrived, by kind."""

    replicas: tuple[ReplicaState, ...]
    draining: bool
    live_requests: int
    pools: tuple[PoolState, ...] = ()
    arrivals: Mapping[Arrival, int] = field(default_factory=dict)

    @property
    def amplification(self) -> float:
        """Return all arrivals over the first ones since the start; 1 while there were none."""
        first = self.arrivals.get(Arrival.FIRST, 0)
        return sum(self.arrivals.values()) / first if first else 1.0
