"""Rungs in one line, and pools of a controller on which they are held, for tests of what rungs do to requests."""

from datetime import date
from typing import Any

from fakes.door import BOTH_LANES, policy
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import RungHeld
from llmshed.admission.policy import AdmissionPolicy, PoolPolicy
from llmshed.admission.request import Lane
from llmshed.ladder.model import Ladder, Rung
from llmshed.ladder.standing import Hold

STOP_BULK: dict[str, Any] = {"action": "stop_bulk"}
SHED_LOW: dict[str, Any] = {"action": "shed_interactive", "scope": {"classes": ["low"]}}
SHED_NORMAL: dict[str, Any] = {"action": "shed_interactive", "scope": {"classes": ["normal"]}}


def rung(name: str, **settings: Any) -> Rung:
    """Return a rung that somebody agreed on."""
    return Rung.model_validate({"name": name, "owner": "a", "agreed_on": date(2026, 12, 1)} | settings, strict=False)


def cap(tokens: int, **settings: Any) -> dict[str, Any]:
    """Return the settings of a rung that lowers ceilings."""
    return {"action": "cap_output", "max_output_tokens": tokens} | settings


def ladder_of(*settings: dict[str, Any], **windows: Any) -> Ladder:
    """Return a ladder of rungs r1, r2, ..., each with its settings, in windows of a minute or as told."""
    rungs = tuple(rung(f"r{number}", **one) for number, one in enumerate(settings, 1))
    return Ladder.model_validate(
        {"schema": "llmshed.ladder/1", "name": "small", "version": "1", "windows": windows, "rungs": rungs}
    )


def pool_on(ladder: Ladder | None, name: str = "main", lanes: frozenset[Lane] = BOTH_LANES) -> PoolPolicy:
    """Return a pool of model `m` with a ladder."""
    return PoolPolicy(name, "m", frozenset(), lanes, ladder)


def policy_on(*pools: PoolPolicy, **changes: Any) -> AdmissionPolicy:
    """Return a policy of these pools."""
    return policy(pools=pools, **changes)


def held(controller: AdmissionController, name: str, until: float = 1e6, now: float = 0.0, pool: str = "main") -> Any:
    """Hold a rung, and return what follows."""
    return controller.handle(RungHeld(pool, Hold(name, until, "a test")), now)
