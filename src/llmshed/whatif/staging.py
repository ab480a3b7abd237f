"""From what the operator wrote and the replica that is simulated to the setting of one run, as the daemon takes them.

The replicas of the configuration are replaced: each pool gets copies of one simulated replica, which tells of itself
what an engine of its version tells. Every traced request asks for the model of the first pool.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import floor

from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import ReplicaUp
from llmshed.admission.policy import ReplicaSpec
from llmshed.admission.request import Lane
from llmshed.admission.settings import admission_policy, replica_spec
from llmshed.config.pools import PoolSettings
from llmshed.config.settings import Config
from llmshed.ladder.model import Ladder
from llmshed.profile import Profile
from llmshed.simulation.building import Parameters, build_model
from llmshed.whatif.manners import engine_limits, engine_manners, warnings_of
from llmshed.whatif.setting import Objectives, Setting

SIMULATED_MODEL = "llmshed/simulated"
"""What a simulated replica calls its model, for pools whose model is `auto`."""


def setting_from(
    config: Config,
    profiles: Mapping[str, Profile],
    parameters: Parameters,
    copies: Mapping[str, int],
    ladders: Mapping[str, Ladder] | None = None,
) -> Setting:
    """Return the setting of one run.

    Args:
        config: the operator's configuration; its tenants need no keys here.
        profiles: profile of each pool that has one, by the pool's name.
        parameters: what every replica is.
        copies: replicas of each pool, by its name, at least 1.
        ladders: ladder of each pool that has one, by the pool's name.

    Raises:
        ValueError: a pool has no copies; the text names it.
    """
    policy = admission_policy(config, {pool.name: SIMULATED_MODEL for pool in config.pools}, ladders)
    specs: list[ReplicaSpec] = []
    warnings: list[str] = []
    for pool in config.pools:
        if copies.get(pool.name, 0) < 1:
            raise ValueError(f"pool {pool.name} has no replicas: each pool takes at least 1")
        profile = profiles.get(pool.name)
        first = _spec(config, pool, parameters, profile)
        warnings += warnings_of(first, parameters, profile)
        specs += [replace(first, name=f"{pool.name}-{number}") for number in range(1, copies[pool.name] + 1)]
    model = policy.pools[0].model
    warnings += [
        f"pool {pool.name} serves {pool.model}, and every request of the trace asks for {model}: it gets none"
        for pool in policy.pools
        if not pool.serves(model)
    ]
    lanes = config.lanes
    bulk_tpot = lanes.bulk.tpot_objective_seconds
    tpot_seconds = {Lane.INTERACTIVE: lanes.interactive.tpot_objective_seconds}
    return Setting(
        policy=policy,
        specs=tuple(specs),
        models={spec.name: build_model(parameters) for spec in specs},
        parameters=parameters,
        build_model=partial(build_model, parameters),
        objectives=Objectives(tpot_seconds | {Lane.BULK: bulk_tpot, Lane.OVERFLOW: bulk_tpot}),
        model=model,
        default_tenant=next(iter(policy.tenants)),
        retry_jitter_ratio=config.admission.retry_jitter_ratio,
        max_retry_after_seconds=config.admission.max_retry_after_seconds,
        warnings=tuple(warnings),
    )


def build_controller(setting: Setting) -> AdmissionController:
    """Return the daemon's own controller with all replicas up."""
    controller = AdmissionController(setting.policy)
    for spec in setting.specs:
        controller.handle(ReplicaUp(spec), 0.0)
    return controller


def spread_copies(config: Config, total: int) -> dict[str, int]:
    """Return how many of `total` replicas each pool gets: by the replicas that it lists, and at least one.

    Shares are rounded down and what is left goes to the largest rests, the first pool first among equals.

    Raises:
        ValueError: there are fewer replicas than pools.
    """
    if total < len(config.pools):
        raise ValueError(f"{total} replicas cannot serve {len(config.pools)} pools: each takes at least 1")
    listed = {pool.name: len(pool.replicas) for pool in config.pools}
    spare = total - len(listed)
    exact = {name: spare * count / sum(listed.values()) for name, count in listed.items()}
    copies = {name: 1 + floor(share) for name, share in exact.items()}
    by_rest = sorted(exact, key=lambda name: floor(exact[name]) - exact[name])
    for name in by_rest[: total - sum(copies.values())]:
        copies[name] += 1
    return copies


def _spec(config: Config, pool: PoolSettings, parameters: Parameters, profile: Profile | None) -> ReplicaSpec:
    limits, manners = engine_limits(parameters), engine_manners(parameters)
    return replica_spec(config, pool, pool.name, limits, manners, profile)
