"""Ladders as plain values: where pools stand, what is held, what a rung would have done."""

import math
from dataclasses import asdict
from typing import Any

from llmshed.gateway.daemon.app import Gateway
from llmshed.ladder.model import Ladder
from llmshed.ladder.rehearsal import Rehearsal
from llmshed.ladder.standing import Hold, Standing, WindowSummary


def status_report(gateway: Gateway) -> dict[str, Any]:
    """Return where every pool stands, with what is known of its evaluations and of the files."""
    book, now = gateway.ladder_book, gateway.clock.now()
    ladders = {pool.name: pool.ladder for pool in gateway.policy.pools}
    return {
        "config_version": gateway.snapshot.version,
        "state_file": book.settings.state_file,
        "audit_file": book.settings.audit_file,
        "trouble": book.trouble,
        "pools": [
            _pool(gateway, pool.name, ladders.get(pool.name), pool.ladder, now) for pool in gateway.driver.state().pools
        ],
    }


def short_report(standing: Standing | None, now: float) -> dict[str, Any] | None:
    """Return where a pool stands in few words, for `/admin/state`; None without a ladder."""
    if standing is None:
        return None
    return {
        "ladder": standing.ladder,
        "by_rule": standing.by_rule,
        "in_force": [rung.name for rung in standing.in_force],
        "hold": hold_report(standing.hold, now),
    }


def hold_report(hold: Hold | None, now: float) -> dict[str, Any] | None:
    """Return what is held, and for how long from now."""
    if hold is None:
        return None
    return {"rung": hold.rung, "reason": hold.reason, "remaining_seconds": round(max(hold.until - now, 0.0), 3)}


def rehearsal_report(rehearsal: Rehearsal, past_seconds: float) -> dict[str, Any]:
    """Return what a rung would have done to the past seconds' requests."""
    return {"past_seconds": past_seconds, **asdict(rehearsal)}


def _pool(gateway: Gateway, name: str, ladder: Ladder | None, standing: Standing | None, now: float) -> dict[str, Any]:
    if ladder is None or standing is None:
        return {"pool": name, "ladder": None}
    return {
        "pool": name,
        "rung": standing.rung,
        **(short_report(standing, now) or {}),
        "rungs": [
            {
                "number": number,
                "name": rung.name,
                "action": rung.action,
                "owner": rung.owner,
                "agreed_on": rung.agreed_on.isoformat(),
                "in_force": number <= standing.rung,
            }
            for number, rung in enumerate(ladder.rungs, 1)
        ],
        "above_windows": standing.above_windows,
        "calm_windows": standing.calm_windows,
        "exit_windows": standing.exit_windows,
        "window": None if standing.window is None else _window(standing.window, now),
        "stale": [asdict(stale) for stale in gateway.evaluations.stale(name)],
    }


def _window(window: WindowSummary, now: float) -> dict[str, Any]:
    endless = window.signal_seconds is not None and math.isinf(window.signal_seconds)
    told = asdict(window)
    del told["ended_at"]
    return {
        "ended_seconds_ago": round(now - window.ended_at, 3),
        **told,
        "signal_seconds": None if endless else window.signal_seconds,
        "endless": endless,
    }
