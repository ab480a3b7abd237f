"""What one decision costs, and that it does not grow with what runs or waits."""

from collections import deque
from typing import Any

from measure import cpu_microseconds, show

from llmshed.admission.actions import Dispatch
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
RUNNING = 200
FULL_SHARE_TOKENS = 500


def door(running: int, gross_ceiling_tokens: int, *, waiting: int = 0, replicas: int = 1) -> AdmissionController:
    """Return a controller on whose replicas together that many requests run, with as many as may wait in its queue."""
    queue: dict[str, Any] = {"queue_requests": waiting, "queue_tokens": ROOMY_TOKENS, "max_residence_seconds": 1e6}
    lanes = {Lane.INTERACTIVE: LanePolicy(4096, 1024, 512, **queue), Lane.BULK: LanePolicy(None, None, 1024)}
    pools = (PoolPolicy("main", "m", frozenset(), frozenset({Lane.INTERACTIVE, Lane.BULK})),)
    controller = AdmissionController(AdmissionPolicy(lanes, pools, {"acme": TenantPolicy("acme")}))
    budget = ReplicaBudget(gross_ceiling_tokens // replicas, 0.0, 100_000)
    for name in range(replicas):
        controller.handle(ReplicaUp(ReplicaSpec(f"r{name}", "main", budget, ModelLimits(8191, 8192))), 0.0)
    for key in range(running + waiting):
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


class Turns:
    """A full door at which one request ends, the next of the queue is sent, and another comes and waits."""

    def __init__(self, waiting: int, replicas: int = 1) -> None:
        """Fill replicas and queue."""
        self.controller = door(RUNNING, RUNNING * FULL_SHARE_TOKENS, waiting=waiting, replicas=replicas)
        self._running = deque(range(RUNNING))
        self._next_key = RUNNING + waiting

    def __call__(self) -> None:
        """Take one turn."""
        actions = self.controller.handle(Finished(self._running.popleft(), 100), 1.0)
        self._running += [action.key for action in actions if isinstance(action, Dispatch)]
        self.controller.handle(Arrived(request(self._next_key)), 1.0)
        self._next_key += 1

    def refuse(self) -> None:
        """Refuse one more, since the queue is full."""
        self.controller.handle(Arrived(request(-1)), 1.0)


def main() -> None:
    """Print the figures."""
    idle, busy = door(0, ROOMY_TOKENS), door(RUNNING, ROOMY_TOKENS)
    full = door(RUNNING, RUNNING * FULL_SHARE_TOKENS)
    queued = {waiting: Turns(waiting) for waiting in (10, 1_000, 10_000)}
    wide = {replicas: Turns(1_000, replicas) for replicas in (4, 8)}
    figures = cpu_microseconds(
        {
            "admit, first token, finish: 0 running": lambda: life(idle),
            "admit, first token, finish: 200 running": lambda: life(busy),
            "refuse with its wait: 200 running": lambda: full.handle(Arrived(request(-1)), 1.0),
            **{f"refuse at a full queue: {waiting:,} wait": turns.refuse for waiting, turns in queued.items()},
            **{f"refuse: 1,000 wait, {replicas} replicas": turns.refuse for replicas, turns in wide.items()},
            **{f"finish, send the next, queue: {waiting:,} wait": turns for waiting, turns in queued.items()},
            **{f"finish, send, queue: 1,000 wait, {replicas} replicas": turns for replicas, turns in wide.items()},
        },
        repeats=300,
    )
    show("decision (CPU)", figures, "admit, first token, finish: 0 running")


if __name__ == "__main__":
    main()
