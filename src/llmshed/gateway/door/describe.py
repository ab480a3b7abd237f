"""What the gateway serves, told to those who ask: health, TGI's `/info`, OpenAI's `/v1/models`, and our own limits."""

from typing import Any

from aiohttp import web

from llmshed import __version__
from llmshed.admission.options import roomiest_maximums
from llmshed.admission.policy import UNCALIBRATED, PoolPolicy, ReplicaSpec
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane
from llmshed.gateway.contract.answer_headers import common_headers
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.door.answers import json_answer
from llmshed.gateway.door.peer import is_loopback_peer
from llmshed.gateway.door.problems import RefusedError
from llmshed.gateway.door.visit import Visit

LIMITS_SCHEMA = "llmshed.limits/1"


async def health(gateway: Gateway, visit: Visit) -> web.Response:
    """Answer 200 with an empty body, as TGI does, while requests are taken; else 503 with the reason.

    Raises:
        RefusedError: draining, starting, or no replica is up.
    """
    verdict = gateway.unserving()
    if verdict is not None:
        raise RefusedError(Problem.from_verdict(verdict))
    return web.Response(headers=common_headers(visit.request_id))


async def info(gateway: Gateway, visit: Visit) -> web.Response:
    """Describe the first pool in TGI's shape; the limits are those that the gateway accepts."""
    pool = gateway.policy.pools[0]
    specs = gateway.fleet.specs(pool.name)
    told = gateway.fleet.info(pool.name)
    if not specs:
        raise RefusedError(Problem(Reason.STARTING, "no replica has come up yet"))
    return json_answer(
        {
            "model_id": pool.model,
            "model_sha": None,
            "model_pipeline_tag": None,
            "max_concurrent_requests": sum(spec.budget.hard_cap_sequences for spec in specs),
            "max_best_of": 2 if told is None or told.max_best_of is None else told.max_best_of,
            "max_stop_sequences": 4,
            "max_input_tokens": max(spec.limits.max_input_tokens for spec in specs),
            "max_total_tokens": max(spec.limits.max_total_tokens for spec in specs),
            "validation_workers": visit.snapshot.config.counting.threads,
            "max_client_batch_size": 4
            if told is None or told.max_client_batch_size is None
            else told.max_client_batch_size,
            "router": "llmshed",
            "version": __version__,
            "sha": None,
            "docker_label": None,
        },
        common_headers(visit.request_id, model=pool.model),
    )


async def models(gateway: Gateway, visit: Visit) -> web.Response:
    """List the models in OpenAI's shape."""
    names = dict.fromkeys(pool.model for pool in gateway.policy.pools)
    data = [{"id": name, "object": "model", "created": 0, "owned_by": name} for name in names]
    return json_answer({"object": "list", "data": data}, common_headers(visit.request_id))


async def limits(gateway: Gateway, visit: Visit) -> web.Response:
    """Tell the limits that refusals refer to; callers on this machine also learn where the admin listener is."""
    policy, server = gateway.policy, visit.snapshot.config.server
    pools = [_pool_limits(gateway, pool) for pool in policy.pools]
    body: dict[str, Any] = {
        "schema": LIMITS_SCHEMA,
        "version": __version__,
        "config_version": visit.snapshot.version,
        "calibrated": all(pool["calibrated"] for pool in pools),
        "max_body_bytes": server.max_body_bytes,
        "max_headers": server.max_headers,
        "max_header_bytes": server.max_header_bytes,
        "max_retry_after_seconds": visit.snapshot.config.admission.max_retry_after_seconds,
        "lanes": {
            lane: {
                "max_input_tokens": thresholds.max_input_tokens,
                "max_output_tokens": thresholds.max_output_tokens,
                "default_output_tokens": thresholds.default_output_tokens,
            }
            for lane, thresholds in policy.lanes.items()
        },
        "pools": pools,
    }
    if is_loopback_peer(visit.request.get_extra_info("peername")):
        body["admin"] = gateway.admin_url
    return json_answer(body, common_headers(visit.request_id))


def _pool_limits(gateway: Gateway, pool: PoolPolicy) -> dict[str, Any]:
    specs = gateway.fleet.specs(pool.name)
    return {
        "model": pool.model,
        "aliases": sorted(pool.aliases),
        "calibrated": bool(specs) and all(spec.profile != UNCALIBRATED for spec in specs),
        "lanes": {lane: _lane_limits(gateway, lane, specs) for lane in sorted(pool.lanes)},
    }


def _lane_limits(gateway: Gateway, lane: Lane, specs: tuple[ReplicaSpec, ...]) -> dict[str, Any] | None:
    """Return what the roomiest replica takes in this lane; None while no replica has told its limits."""
    if not specs:
        return None
    thresholds = gateway.policy.lanes[lane]
    most = roomiest_maximums(thresholds, (spec.limits for spec in specs))
    return {
        "max_input_tokens": most.max_input_tokens,
        "max_output_tokens": most.max_output_tokens,
        "max_total_tokens": most.max_total_tokens,
        "default_output_tokens": thresholds.default_output_tokens,
    }
