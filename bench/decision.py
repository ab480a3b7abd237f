"""What one decision costs, and that it does not grow with what runs."""

from measure import cpu_microseconds, show

from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import Arrived, Finished, FirstToken, ReplicaUp
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

ROOMY_TOKENS = 100_000_000
FULL_SHARE_TOKENS = 500


def door(running: int, gross_ceiling_tokens: int) -> AdmissionController:
    """Return a controller with one replica on which that many requests run."""
    lanes = {Lane.INTERACTIVE: LanePolicy(4096, 1024, 512), Lane.BULK: LanePolicy(None, None, 1024)}
    pools = (PoolPolicy("main", "m", frozenset(), frozenset({Lane.INTERACTIVE, Lane.BULK})),)
    controller = AdmissionController(AdmissionPolicy(lanes, pools, {"acme": TenantPolicy("acme")}))
    budget = ReplicaBudget(gross_ceiling_tokens, 0.0, 100_000)
    controller.handle(ReplicaUp(ReplicaSpec("r1", "main", budget, ModelLimits(8191, 8192))), 0.0)
    for key in range(running):
        controller.handle(Arrived(request(key)), 0.0)
    return controller


def request(key: int) -> Request:
    """Return a 400-token chat turn."""
    return Request(key, "acme", "m", (400,), asked_output_tokens=100)


def life(controller: AdmissionController) -> None:
    """Admit, first token, finish."""
    controller.handle(Arrived(request(-1)), 1.0)
    controller.handle(FirstToken(-1), 1.0)
    controller.handle(Finished(-1, 100), 1.0)


def main() -> None:
    """Print the figures."""
    idle, busy, full = door(0, ROOMY_TOKENS), door(200, ROOMY_TOKENS), door(200, 200 * FULL_SHARE_TOKENS)
    figures = cpu_microseconds(
        {
            "admit, first token, finish: 0 running": lambda: life(idle),
            "admit, first token, finish: 200 running": lambda: life(busy),
            "refuse with its wait: 200 running": lambda: full.handle(Arrived(request(-1)), 1.0),
        },
        repeats=300,
    )
    show("decision (CPU)", figures, "admit, first token, finish: 0 running")


if __name__ == "__main__":
    main()
