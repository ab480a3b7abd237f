"""`/admin/ladder/drill`: what a drill needs to know of a pool, and the pass by which its requests choose their path."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from llmshed.admission.policy import PoolPolicy
from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError
from llmshed.gateway.admin.handlers import Administration
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.door.answers import json_answer
from llmshed.gateway.door.body import parse_body
from llmshed.gateway.door.intake import read_body
from llmshed.gateway.ladders.passes import VALID_SECONDS
from llmshed.ladder.paths import changing, path_of, target_of, terms_of

DRILL_SCHEMA = "llmshed.ladder_drill/1"


async def drill(house: Administration, request: web.BaseRequest) -> web.Response:
    """Let a drill begin: draw its pass, and tell the paths, the models and where results are kept."""
    gateway = house.gateway
    body = parse_body(await read_body(request, gateway.snapshot.config.server, gateway.clock.now))
    return json_answer({"schema": DRILL_SCHEMA, **drill_terms(gateway, body)})


def drill_terms(gateway: Gateway, question: Mapping[str, Any]) -> dict[str, Any]:
    """Answer `{"pool": NAME}`; without a name it is the one pool that has a ladder.

    Raises:
        BodyError: the question has another field, names no pool with a ladder, or none where there are several.
    """
    unknown = sorted(set(question) - {"pool"})
    if unknown:
        raise BodyError(Reason.MALFORMED, f"{unknown[0][:64]}: is not known; accepted: pool", unknown[0][:64])
    pool = _pool(gateway, question.get("pool"))
    if pool.ladder is None:
        raise BodyError(Reason.MALFORMED, f"pool: {pool.name} has no ladder", "pool")
    ladder, fleet = pool.ladder, gateway.fleet
    models = {one.name: one.model for one in gateway.policy.pools}
    paths = [(rung, path_of(ladder, rung)) for rung in changing(ladder)]
    answering = {pool.name, *(target for _, path in paths if (target := target_of(path)))}
    return {
        "pass": gateway.passes.draw(gateway.clock.now()),
        "valid_seconds": VALID_SECONDS,
        "data": gateway.data_url,
        "pool": pool.name,
        "ladder": ladder.label,
        "in_force": [rung.name for rung in gateway.driver.rungs_in_force(pool.name)],
        "evaluations": ladder.evaluations,
        "pools": {name: {"model": models.get(name), "facts": fleet.facts(name)} for name in sorted(answering)},
        "rungs": [
            {
                "name": rung.name,
                "terms": terms_of(path),
                "actions": [one.action for one in path],
                "pool": target_of(path) or pool.name,
                "largest_quality_gap": rung.largest_quality_gap,
            }
            for rung, path in paths
        ],
    }


def _pool(gateway: Gateway, name: Any) -> PoolPolicy:
    with_ladder = [pool for pool in gateway.policy.pools if pool.ladder is not None]
    found = [pool for pool in with_ladder if name is None or pool.name == name]
    if len(found) == 1:
        return found[0]
    if not with_ladder:
        raise BodyError(Reason.MALFORMED, "pool: no pool of this gateway has a ladder", "pool")
    raise BodyError(Reason.MALFORMED, f"pool: must be one of {', '.join(pool.name for pool in with_ladder)}", "pool")
