"""What the core tells of itself: a frozen snapshot for `/admin/state`, metrics and `classify`."""

from collections.abc import Mapping
from dataclasses import dataclass

from llmshed.admission.budget import Equation
from llmshed.admission.request import Lane


@dataclass(frozen=True, slots=True)
class LaneUse:
    """What one lane holds on one replica."""

    requests: int
    sequences: int
    reserved_tokens: int


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """One replica's ledger at one instant; `releasing_tokens` are part of `equation.active_tokens`."""

    name: str
    pool: str
    up: bool
    profile: str
    equation: Equation
    releasing_tokens: int
    lanes: Mapping[Lane, LaneUse]


@dataclass(frozen=True, slots=True)
class ControllerState:
    """All replicas, in the order in which they came up."""

    replicas: tuple[ReplicaState, ...]
    draining: bool
    live_requests: int
