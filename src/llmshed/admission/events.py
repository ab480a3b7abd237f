"""What can happen to the core; each event is a fact, and `now` of `handle` is when it became known."""

from dataclasses import dataclass

from llmshed.admission.policy import AdmissionPolicy, ReplicaBudget, ReplicaSpec
from llmshed.admission.request import Request
from llmshed.ladder.standing import Hold


@dataclass(frozen=True, slots=True)
class Arrived:
    """A counted request stands at the door; answered by exactly one Dispatch, Enqueue or Refuse."""

    request: Request


@dataclass(frozen=True, slots=True)
class FirstToken:
    """The engine sent its first token: the request's prefill is over."""

    key: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The engine ended the answer by itself; its tokens are free."""

    key: int
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The engine failed or fell silent after it was given the request.

    `engine_holds` is True when the upstream connection was closed under a running engine (a timeout): the tokens are
    then `releasing` for the grace, as after a cancel.
    """

    key: int
    engine_holds: bool


@dataclass(frozen=True, slots=True)
class NotSent:
    """The chosen replica was lost before it read a byte; answered by one Dispatch elsewhere or a Refuse."""

    key: int


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The client left. A closed socket is not a released engine: tokens stay charged as `releasing` for a while.

    One that waits is answered nothing more, even if its wait is over by this very reading.
    `sent` is False when the engine never got the request, so that nothing needs to be waited for.
    """

    key: int
    sent: bool


@dataclass(frozen=True, slots=True)
class ReplicaUp:
    """A replica serves, with these numbers; also sent when they change. Running work keeps its charge."""

    spec: ReplicaSpec


@dataclass(frozen=True, slots=True)
class ReplicaDown:
    """A replica takes no new work; what runs there ends by its own events."""

    name: str


@dataclass(frozen=True, slots=True)
class ReplicaRemoved:
    """A replica left the configuration: it takes no new work and is forgotten once its ledger is empty."""

    name: str


@dataclass(frozen=True, slots=True)
class BudgetChanged:
    """A replica's budget was derated, restored or re-leased; nothing that runs is evicted."""

    name: str
    budget: ReplicaBudget


@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """The operator's numbers were replaced; running requests keep the snapshot that they came under."""

    policy: AdmissionPolicy


@dataclass(frozen=True, slots=True)
class RungHeld:
    """A person holds a rung of a pool's ladder until the hold's own time or a `RungReleased`; replaces another hold."""

    pool: str
    hold: Hold


@dataclass(frozen=True, slots=True)
class RungReleased:
    """A person gave up what was held on a pool; nothing happens where nothing is."""

    pool: str


@dataclass(frozen=True, slots=True)
class ReplicaRead:
    """What a replica's own metrics told that a ladder may be entered by; None where they do not tell.

    Args:
        name: the replica.
        kv_used_ratio: share of its KV cache in use.
        preemptions_over_budget: preemptions a minute by what its profile permits; None without such a budget too.
    """

    name: str
    kv_used_ratio: float | None
    preemptions_over_budget: float | None


@dataclass(frozen=True, slots=True)
class Draining:
    """The gateway shuts down: every later arrival is refused, what runs goes on."""


@dataclass(frozen=True, slots=True)
class Tick:
    """The time asked for by `next_wakeup` has come."""


Event = (
    Arrived
    | FirstToken
    | Finished
    | Failed
    | NotSent
    | Cancelled
    | ReplicaUp
    | ReplicaDown
    | ReplicaRemoved
    | BudgetChanged
    | PolicyChanged
    | RungHeld
    | RungReleased
    | ReplicaRead
    | Draining
    | Tick
)
