"""From what the operator wrote and the engine told to the numbers that admission decides by.

A replica's numbers come from its profile where there is one. Without a profile it is `uncalibrated`: the gross ceiling
is the configured one, else what the engine tells (`max_batch_total_tokens`), else such that the safe budget is exactly
one `max_total_tokens`, the least with which every request that the model takes can run alone. A profile's `overcommit`
is not lent: it holds only while the live ratio of output to ceiling stays where it was measured.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from llmshed.admission.policy import (
    UNCALIBRATED,
    AdmissionPolicy,
    BulkShare,
    LanePolicy,
    ModelLimits,
    PoolPolicy,
    ReplicaBudget,
    ReplicaSpec,
    TenantPolicy,
)
from llmshed.admission.request import Intent, Lane, PriorityClass
from llmshed.config.lanes import BulkLane, BulkThresholds, InteractiveLane, InteractiveThresholds
from llmshed.config.pools import PoolSettings
from llmshed.config.settings import Config
from llmshed.config.tenants import TenantSettings
from llmshed.ladder.model import Ladder
from llmshed.profile import Profile

ANONYMOUS = "anonymous"
"""Tenant of every request while no tenants are configured."""
UNKNOWN_HARD_CAP_SEQUENCES = 128
"""Hard cap where neither profile nor configuration nor engine names one: TGI's default permits."""
UNKNOWN_MAX_TOTAL_TOKENS = 4096
"""Context where nobody tells it."""
RESIDENCE_OF_QUEUE_SHARE = 1.5
"""Longest wait in units of the queue's share of the TTFT objective: a signal on that share shows before it acts."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What a replica told of itself, in tokens and requests; None where it did not."""

    max_concurrent_requests: int | None = None
    max_input_tokens: int | None = None
    max_total_tokens: int | None = None
    max_batch_total_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class EngineManners:
    """How an engine of this kind and version behaves, which it does not tell.

    Args:
        overrun_chunk_tokens: it rounds a longer output up to a multiple of this; 0 when it stops at the ceiling.
        prefill_blocks_starts: nothing else starts on it while a prompt is processed.
    """

    overrun_chunk_tokens: int = 0
    prefill_blocks_starts: bool = False


def admission_policy(
    config: Config, model_ids: Mapping[str, str] | None = None, ladders: Mapping[str, Ladder] | None = None
) -> AdmissionPolicy:
    """Return the policy of a configuration.

    Args:
        config: what the operator wrote.
        model_ids: what engines told, by the names of pools whose model is `auto`.
        ladders: the ladders that were read, by the names of pools that have one.
    """
    told, agreed = model_ids or {}, ladders or {}
    pools = tuple(
        PoolPolicy(
            name=pool.name,
            model=told.get(pool.name, pool.model) if pool.model == "auto" else pool.model,
            aliases=frozenset(pool.aliases),
            lanes=frozenset(Lane(lane) for lane in pool.lanes),
            ladder=agreed.get(pool.name),
        )
        for pool in config.pools
    )
    tenants = {tenant.name: _tenant(tenant) for tenant in config.tenants} or {ANONYMOUS: TenantPolicy(ANONYMOUS)}
    return AdmissionPolicy(
        lanes={
            Lane.INTERACTIVE: _queued_lane(config.lanes.interactive),
            Lane.BULK: _queued_lane(config.lanes.bulk),
        },
        pools=pools,
        tenants=tenants,
    )


def lane_policies(interactive: InteractiveThresholds, bulk: BulkThresholds) -> dict[Lane, LanePolicy]:
    """Return the thresholds of both lanes, where nothing waits; overflow has none, since nothing enters it."""
    return {
        lane: LanePolicy(lane_.max_input_tokens, lane_.max_output_tokens, lane_.default_output_tokens)
        for lane, lane_ in ((Lane.INTERACTIVE, interactive), (Lane.BULK, bulk))
    }


def max_residence_seconds(lane: InteractiveLane | BulkLane) -> float:
    """Return the longest wait of a lane: the configured one, else 1.5 times the queue's share of its TTFT objective."""
    if lane.max_residence_seconds is not None:
        return lane.max_residence_seconds
    return RESIDENCE_OF_QUEUE_SHARE * lane.queue_share_ratio * lane.ttft_objective_seconds


def replica_spec(
    config: Config,
    pool: PoolSettings,
    name: str,
    engine: EngineLimits,
    manners: EngineManners,
    profile: Profile | None,
) -> ReplicaSpec:
    """Return the numbers of one replica."""
    limits = model_limits(pool, engine, profile)
    budget = _uncalibrated_budget(config, pool, engine, limits) if profile is None else profile_budget(profile, pool)
    return ReplicaSpec(
        name=name,
        pool=pool.name,
        budget=budget,
        limits=limits,
        overrun_chunk_tokens=manners.overrun_chunk_tokens,
        profile=UNCALIBRATED if profile is None else profile.label,
        prefill_blocks_starts=manners.prefill_blocks_starts,
        max_shared_prompt_tokens=_max_shared_prompt_tokens(config, pool, manners, profile),
    )


def profile_budget(profile: Profile, pool: PoolSettings | None = None) -> ReplicaBudget:
    """Return what a profile lets a replica lend; a pool's own hard cap wins over the profile's."""
    cap = None if pool is None else pool.max_concurrent_sequences
    grace = {} if pool is None else {"release_grace_seconds": pool.release_grace_seconds}
    return ReplicaBudget(
        gross_ceiling_tokens=profile.budget.gross_ceiling_tokens,
        guard_band_ratio=profile.budget.guard_band_ratio,
        hard_cap_sequences=cap or profile.budget.hard_cap_sequences,
        prefill_tokens_per_second=None if profile.prefill is None else profile.prefill.safe_tokens_per_second,
        decode_seconds_per_token=None if profile.decode is None else profile.decode.seconds_per_token,
        prefill_inflight_tokens=None if profile.prefill is None else profile.prefill.inflight_tokens,
        bulk=BulkShare(
            reserved_max_ratio=profile.bulk.reserved_max_ratio,
            reserved_floor_ratio=profile.bulk.reserved_floor_ratio,
            prefill_cap_ratio=profile.bulk.prefill_cap_ratio,
            prefill_floor_ratio=profile.bulk.prefill_floor_ratio,
        ),
        **grace,
    )


def model_limits(pool: PoolSettings | None, engine: EngineLimits, profile: Profile | None) -> ModelLimits:
    """Return what one sequence may hold: the least of what configuration, engine and profile say."""
    told = None if profile is None else profile.limits
    totals = (
        None if pool is None else pool.max_total_tokens,
        engine.max_total_tokens,
        None if told is None else told.max_total_tokens,
    )
    total = min((bound for bound in totals if bound is not None), default=UNKNOWN_MAX_TOTAL_TOKENS)
    inputs = (engine.max_input_tokens, None if told is None else told.max_input_tokens, total - 1)
    return ModelLimits(min(bound for bound in inputs if bound is not None), total)


def spec_warnings(spec: ReplicaSpec, engine: EngineLimits, profile: Profile | None) -> tuple[str, ...]:
    """Return what an operator should know about these numbers, one sentence each."""
    warnings = []
    permits = engine.max_concurrent_requests
    if profile is None:
        warnings.append(
            f"replica {spec.name} is uncalibrated: its gross ceiling of {spec.budget.gross_ceiling_tokens:,} tokens is"
            f" {_origin(spec, engine)}, not measured; set gross_ceiling_tokens or name a profile"
        )
    if permits is not None and spec.budget.hard_cap_sequences > permits:
        warnings.append(
            f"the hard cap of replica {spec.name} is {spec.budget.hard_cap_sequences:,} sequences, its engine's"
            f" max_concurrent_requests is {permits:,}: the engine would refuse what the gateway admitted"
        )
    if profile is not None and profile.budget.overcommit_ratio > 1:
        warnings.append(
            f"profile {profile.label} names an overcommit of {profile.budget.overcommit_ratio:g}: it is not lent"
        )
    return tuple(warnings)


def _max_shared_prompt_tokens(
    config: Config, pool: PoolSettings, manners: EngineManners, profile: Profile | None
) -> int | None:
    """Return the longest bulk prompt that leaves an interactive one behind it within its TTFT objective.

    It matters where both lanes share replicas on which nothing starts while a prompt is processed; None elsewhere, and
    where no profile tells rate and unloaded TTFT.
    """
    shared = set(pool.lanes) >= {Lane.INTERACTIVE, Lane.BULK}
    if not shared or not manners.prefill_blocks_starts or profile is None:
        return None
    if profile.prefill is None or profile.latency is None:
        return None
    spare_seconds = config.lanes.interactive.ttft_objective_seconds - profile.latency.unloaded_ttft_p95_seconds
    return max(0, math.floor(spare_seconds * profile.prefill.safe_tokens_per_second))


def _queued_lane(lane: InteractiveLane | BulkLane) -> LanePolicy:
    return LanePolicy(
        max_input_tokens=lane.max_input_tokens,
        max_output_tokens=lane.max_output_tokens,
        default_output_tokens=lane.default_output_tokens,
        queue_requests=lane.queue_requests,
        queue_tokens=lane.queue_tokens,
        max_residence_seconds=max_residence_seconds(lane),
        ttft_objective_seconds=lane.ttft_objective_seconds,
        tpot_objective_seconds=lane.tpot_objective_seconds,
        queue_share_ratio=lane.queue_share_ratio,
    )


def _origin(spec: ReplicaSpec, engine: EngineLimits) -> str:
    """Say where the gross ceiling of an uncalibrated replica comes from."""
    if spec.budget.gross_ceiling_tokens == engine.max_batch_total_tokens:
        return "what the engine told"
    return "configured or assumed"


def _uncalibrated_budget(
    config: Config, pool: PoolSettings, engine: EngineLimits, limits: ModelLimits
) -> ReplicaBudget:
    ratio = config.admission.guard_band_ratio
    gross = pool.gross_ceiling_tokens or engine.max_batch_total_tokens or _gross_for(limits.max_total_tokens, ratio)
    return ReplicaBudget(
        gross_ceiling_tokens=gross,
        guard_band_ratio=ratio,
        hard_cap_sequences=pool.max_concurrent_sequences
        or engine.max_concurrent_requests
        or UNKNOWN_HARD_CAP_SEQUENCES,
        release_grace_seconds=pool.release_grace_seconds,
    )


def _gross_for(safe_tokens: int, guard_band_ratio: float) -> int:
    """Return the least gross ceiling whose safe budget is at least `safe_tokens`."""
    gross = math.floor(safe_tokens / (1 - guard_band_ratio))
    while ReplicaBudget(gross, guard_band_ratio, 1).safe_budget_tokens < safe_tokens:
        gross += 1
    return gross


def _tenant(settings: TenantSettings) -> TenantPolicy:
    return TenantPolicy(
        name=settings.name,
        intents=frozenset(Intent(intent) for intent in settings.intents),
        default_intent=Intent(settings.default_intent),
        top_class=PriorityClass(settings.priority_class),
        weight=settings.weight,
        max_concurrent_requests=settings.max_concurrent_requests,
        max_reserved_tokens=settings.max_reserved_tokens,
    )
