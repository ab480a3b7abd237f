"""A door with replicas behind it, built in one line: the numbers of the core's tests and scenarios."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from llmshed.admission.actions import Action, RungChanged
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import Arrived, ReplicaUp
from llmshed.admission.policy import (
    AdmissionPolicy,
    LanePolicy,
    ModelLimits,
    PoolPolicy,
    ReplicaBudget,
    ReplicaSpec,
    TenantPolicy,
)
from llmshed.admission.request import Lane, Request

BOTH_LANES = frozenset({Lane.INTERACTIVE, Lane.BULK})
LANES = {Lane.INTERACTIVE: LanePolicy(4096, 1024, 512), Lane.BULK: LanePolicy(None, None, 1024)}


def queueing_lanes(
    requests: int = 100, residence_seconds: float = 10.0, bulk_residence_seconds: float = 50.0, **changes: Any
) -> dict[Lane, LanePolicy]:
    """Return the lanes with queues; `changes` go into both."""
    both: dict[str, Any] = {"queue_requests": requests} | changes
    return {
        Lane.INTERACTIVE: replace(LANES[Lane.INTERACTIVE], max_residence_seconds=residence_seconds, **both),
        Lane.BULK: replace(LANES[Lane.BULK], max_residence_seconds=bulk_residence_seconds, **both),
    }


def policy(**changes: Any) -> AdmissionPolicy:
    """Return a policy of one pool `main` for model `m` and one tenant `acme`."""
    given: dict[str, Any] = {
        "lanes": LANES,
        "pools": (PoolPolicy("main", "m", frozenset({"alias"}), BOTH_LANES),),
        "tenants": {"acme": TenantPolicy("acme")},
    }
    return AdmissionPolicy(**(given | changes))


def spec(name: str = "r1", **changes: Any) -> ReplicaSpec:
    """Return a replica with the source text's numbers: 96,000 gross, a tenth guarded."""
    budget: dict[str, Any] = {"gross_ceiling_tokens": 96_000, "guard_band_ratio": 0.1, "hard_cap_sequences": 64}
    budget |= {key: changes.pop(key) for key in list(changes) if key in ReplicaBudget.__slots__}
    limits = changes.pop("limits", ModelLimits(131_071, 131_072))
    return ReplicaSpec(name, changes.pop("pool", "main"), ReplicaBudget(**budget), limits, **changes)


def door(*specs: ReplicaSpec, **changes: Any) -> AdmissionController:
    """Return a controller whose replicas are up at time 0."""
    controller = AdmissionController(policy(**changes))
    for one in specs or (spec(),):
        answer = controller.handle(ReplicaUp(one), 0.0)  # outside of the assert, which python -O leaves out
        assert answer == []
    return controller


def request(key: int, input_tokens: int | Iterable[int] = 400, output: int | None = 100, **changes: Any) -> Request:
    """Return a request of tenant `acme` for model `m`."""
    prompts = (input_tokens,) if isinstance(input_tokens, int) else tuple(input_tokens)
    given: dict[str, Any] = {"tenant": "acme", "model": "m"}
    return Request(key=key, prompt_tokens=prompts, asked_output_tokens=output, **(given | changes))


def told(actions: Iterable[Action]) -> list[tuple[type[Action], int]]:
    """Return the kind of each action on a request, and its key."""
    return [(type(action), action.key) for action in actions if not isinstance(action, RungChanged)]


def arrive(controller: AdmissionController, key: int, *args: Any, now: float = 0.0, **changes: Any) -> Any:
    """Let a request arrive and return the one action that answers it."""
    *before, answer = controller.handle(Arrived(request(key, *args, **changes)), now)
    assert all(type(action).__name__ == "Released" for action in before)
    return answer
