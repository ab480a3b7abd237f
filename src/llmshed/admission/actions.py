"""What the core asks its driver to do; performing them never fails back into the core except as a later event."""

from dataclasses import dataclass

from llmshed.admission.verdict import Verdict
from llmshed.ladder.standing import Step


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Send the request to `replica`; the charge is taken and is owed back by one ending event."""

    key: int
    replica: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Hold the request; a later Dispatch, Evict or the client's leaving ends its wait."""

    key: int
    pool: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with the verdict's reason; nothing was charged."""

    key: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Evict:
    """Answer a request that was queued with the verdict's reason; its queue place is free."""

    key: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Released:
    """The charge of a request is back in its replica's budget: told once for every Dispatch that was kept."""

    key: int
    replica: str
    tokens: int


@dataclass(frozen=True, slots=True)
class RungChanged:
    """The rung in force on a pool is another one; nothing has to be done but to tell."""

    step: Step


Action = Dispatch | Enqueue | Refuse | Evict | Released | RungChanged
