"""What the core knows of a request: counted integers and declared wishes, never a byte of its text."""

from dataclasses import dataclass
from enum import StrEnum


class Intent(StrEnum):
    """What a request is for, declared by key or route; a client may only ask for less."""

    INTERACTIVE = "interactive"
    BULK = "bulk"


class PriorityClass(StrEnum):
    """Order of shedding inside a lane; `HIGH` is shed last."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"

    rank: int  # 0 for the class that is served first

    def __init__(self, _name: str) -> None:
        """Give the classes their ranks in the order above."""
        self.rank = len(type(self).__members__)


CLASSES = tuple(PriorityClass)
"""The classes in the order of service: a tuple is walked in a tenth of the time of an enumeration."""


class Lane(StrEnum):
    """A class of service with its own limits, budget and promise."""

    INTERACTIVE = "interactive"
    BULK = "bulk"
    OVERFLOW = "overflow"


def service_rank(lane: Lane, priority_class: PriorityClass) -> int:
    """Return the place in the order of service, 0 first: interactive classes by rank, then those of bulk."""
    return priority_class.rank if lane is Lane.INTERACTIVE else len(CLASSES) + priority_class.rank


SERVICE_RANKS = 2 * len(CLASSES)
"""How many places there are in the order of service."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it stands at the door, after its tokens were counted.

    Args:
        key: the gateway's own identity of the request; a client's request id never is.
        tenant: name of an entry in `AdmissionPolicy.tenants`.
        model: the model asked for, a name or an alias of a pool.
        prompt_tokens: input tokens of each prompt; one entry but for lists of prompts; each >= 0.
        copies: sequences that each prompt runs as (`n` or `best_of`), >= 1.
        asked_output_tokens: the ceiling that the client asked for; None when it named none.
        asked_intent: intent that the client declared; None when it declared none.
        asked_class: priority class that the client declared; None when it declared none.
        streamed: whether the answer is a stream, so that a first token is seen.
        arrived_at: clock reading when the request reached the gateway, in seconds.
        deadline: clock reading at which the whole answer has to be there; None without one.
        first_token_deadline: clock reading at which its first token has to be there; None without one.
        session: keyed hash of the session; None without one.
        prefix_blocks: keyed hashes of the prompt's leading blocks, first block first.
        continuing: whether it goes on with a conversation that this gateway served, which a client's word never makes.
        fingerprint: keyed hash of tenant and body, by which a repeat of the same request is known; None: not known.
        declared_repeats: how many tries the client says it made before this one, >= 0.
        degradations: ladder actions that changed it before it was counted, in the order of their rungs.
        moved_from: name of the pool that it was meant for, if a rung sent it to another one; None otherwise.
        declined: ladder actions that would have changed it, had it not declined; it is as it was sent.
        declines_degrading: whether its client would rather be refused than be answered otherwise than it asked.
        drilled: whether it is a drill, which is changed as that asks for and by no rung in force; no ladder goes by it.
    """

    key: int
    tenant: str
    model: str
    prompt_tokens: tuple[int, ...]
    copies: int = 1
    asked_output_tokens: int | None = None
    asked_intent: Intent | None = None
    asked_class: PriorityClass | None = None
    streamed: bool = True
    arrived_at: float = 0.0
    deadline: float | None = None
    first_token_deadline: float | None = None
    session: str | None = None
    prefix_blocks: tuple[str, ...] = ()
    continuing: bool = False
    fingerprint: str | None = None
    declared_repeats: int = 0
    degradations: tuple[str, ...] = ()
    moved_from: str | None = None
    declines_degrading: bool = False
    declined: tuple[str, ...] = ()
    drilled: bool = False

    @property
    def sequences(self) -> int:
        """Return how many sequences the engine runs for this request."""
        return len(self.prompt_tokens) * self.copies

    @property
    def input_tokens(self) -> int:
        """Return the input tokens of all sequences together."""
        return sum(self.prompt_tokens) * self.copies

    @property
    def longest_prompt_tokens(self) -> int:
        """Return the input tokens of the longest single prompt, which the model's limits apply to."""
        return max(self.prompt_tokens)
