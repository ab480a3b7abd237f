"""What the core holds, as plain values: its replicas with their windows, its pools with their queues."""

from dataclasses import asdict
from typing import Any

from llmshed.admission.report import equation_report, window_report
from llmshed.admission.request import service_rank
from llmshed.admission.state import ControllerState, PoolState, QueueState
from llmshed.gateway.admin.standings import short_report


def replicas_report(ledgers: ControllerState) -> list[dict[str, Any]]:
    """Return the replicas in the order in which they came up."""
    return [
        {
            "name": replica.name,
            "pool": replica.pool,
            "up": replica.up,
            "profile": replica.profile,
            "equation": equation_report(replica.equation),
            "releasing_tokens": replica.releasing_tokens,
            "shadow_tokens": replica.shadow_tokens,
            "lanes": {lane: asdict(use) for lane, use in replica.lanes.items()},
            "window": None if replica.window is None else window_report(replica.window),
            "bulk_prefill": {
                "ratio": replica.bulk_prefill_share,
                "cap_ratio": replica.bulk_prefill_cap_ratio,
                "floor_ratio": replica.bulk_prefill_floor_ratio,
            },
        }
        for replica in ledgers.replicas
    ]


def pools_report(ledgers: ControllerState, now: float) -> list[dict[str, Any]]:
    """Return the pools at a clock reading, each with its queues in the order of service."""
    return [
        {
            "name": pool.name,
            "queues": [_queue(pool, queue) for queue in pool.queues],
            "oldest_age_seconds": pool.oldest_age_seconds,
            "ghost_requests": pool.ghosts,
            "ghosts_fitted": pool.ghosts_fitted,
            "ghosts_given_up": pool.ghosts_given_up,
            "ladder": short_report(pool.ladder, now),
        }
        for pool in ledgers.pools
    ]


def _queue(pool: PoolState, queue: QueueState) -> dict[str, Any]:
    rank = service_rank(queue.lane, queue.priority_class)
    return asdict(queue) | {"delay_factor": pool.factors[rank], "promised_seconds": pool.promised_seconds[rank]}
