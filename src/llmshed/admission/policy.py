"""The numbers that admission decides by: frozen values, replaced whole by a `PolicyChanged` or `ReplicaUp` event."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from llmshed.admission.request import Intent, Lane, PriorityClass
from llmshed.ladder.model import Ladder

UNCALIBRATED = "uncalibrated"
"""Told instead of a profile's name and version while a replica has none."""


@dataclass(frozen=True, slots=True)
class LanePolicy:
    """What a lane takes and promises; None where it sets no bound of its own.

    Args:
        max_input_tokens: most input tokens of a prompt.
        max_output_tokens: highest output ceiling.
        default_output_tokens: output ceiling of a request that names none.
        queue_requests: most requests that wait in each pool; 0 lets nothing wait.
        queue_tokens: most reserved tokens that wait in each pool; None for the safe budgets of its replicas together.
        max_residence_seconds: how long a request waits at most.
        ttft_objective_seconds: arrival to first token.
        tpot_objective_seconds: mean time per output token after the first.
        queue_share_ratio: part of the TTFT objective that waiting here may take; the rest is the engine's.
    """

    max_input_tokens: int | None
    max_output_tokens: int | None
    default_output_tokens: int
    queue_requests: int = 0
    queue_tokens: int | None = None
    max_residence_seconds: float = 0.9
    ttft_objective_seconds: float = 2.0
    tpot_objective_seconds: float = 0.1
    queue_share_ratio: float = 0.3

    @property
    def engine_share_seconds(self) -> float:
        """Return how long an engine may take from dispatch to first token."""
        return (1.0 - self.queue_share_ratio) * self.ttft_objective_seconds


@dataclass(frozen=True, slots=True)
class TenantPolicy:
    """What a tenant's key allows: intents, the highest class it may use, the class it gets unasked, its own quota."""

    name: str
    intents: frozenset[Intent] = frozenset(Intent)
    default_intent: Intent = Intent.INTERACTIVE
    top_class: PriorityClass = PriorityClass.NORMAL
    weight: float = 1.0
    max_concurrent_requests: int | None = None
    max_reserved_tokens: int | None = None

    @property
    def has_quota(self) -> bool:
        """Say whether the tenant is bounded by a quota of its own."""
        return self.max_concurrent_requests is not None or self.max_reserved_tokens is not None


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """What one sequence may hold at most on a replica, in tokens, whatever is free."""

    max_input_tokens: int
    max_total_tokens: int
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class BulkShare:
    """What bulk may and must get on a replica that interactive work shares; each a ratio in 0..1.

    Args:
        reserved_max_ratio: most of the safe budget that bulk may hold.
        reserved_floor_ratio: least of it that bulk gets while it has work.
        prefill_cap_ratio: most of the prefill rate while interactive work comes; None for what suits the engine.
        prefill_floor_ratio: least of the prefill rate while it has work.
    """

    reserved_max_ratio: float = 0.5
    reserved_floor_ratio: float = 0.05
    prefill_cap_ratio: float | None = None
    prefill_floor_ratio: float = 0.05


@dataclass(frozen=True, slots=True)
class ReplicaBudget:
    """What a replica may lend.

    Args:
        gross_ceiling_tokens: most reserved tokens that the replica was tested to carry.
        guard_band_ratio: share of it that is never lent, 0 <= ratio < 1.
        hard_cap_sequences: most sequences at once, whatever their size.
        prefill_tokens_per_second: highest rate of prompt tokens at which running streams keep their pace; None when
            unknown, and prefill is then not metered.
        prefill_inflight_tokens: most dispatched prompt tokens without a first token; None when unknown.
        bulk: what bulk may and must get here if interactive work shares the replica.
        decode_seconds_per_token: time of one further token of a sequence under load; None when unknown.
        release_grace_seconds: how long the engine may hold a request whose client left after its first token.

    Attributes:
        guard_band_tokens: the guard band, rounded up: the part that is held back never shrinks by rounding.
        safe_budget_tokens: what policy may lend, gross ceiling less guard band; read many times in each decision.
    """

    gross_ceiling_tokens: int
    guard_band_ratio: float
    hard_cap_sequences: int
    prefill_tokens_per_second: float | None = None
    decode_seconds_per_token: float | None = None
    release_grace_seconds: float = 1.0
    prefill_inflight_tokens: int | None = None
    bulk: BulkShare = BulkShare()
    guard_band_tokens: int = field(init=False, repr=False, compare=False)
    safe_budget_tokens: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Derive the sums once."""
        # Rounded to a millionth first: 0.07 x 100 is 7.000000000000001 in binary, and the band is 7.
        guard_band_tokens = math.ceil(round(self.guard_band_ratio * self.gross_ceiling_tokens, 6))
        object.__setattr__(self, "guard_band_tokens", guard_band_tokens)
        object.__setattr__(self, "safe_budget_tokens", self.gross_ceiling_tokens - guard_band_tokens)


@dataclass(frozen=True, slots=True)
class ReplicaSpec:
    """One replica as admission sees it.

    Args:
        name: unique name, used as a metric label.
        pool: name of the pool that it belongs to.
        budget: what it may lend.
        limits: what one sequence may hold there.
        overrun_chunk_tokens: the engine rounds a longer output up to a multiple of this (TGI >= 3.1.1: 1,024); 0 when
            it stops exactly at the ceiling.
        profile: name and version of the profile behind the budget, or `uncalibrated`.
        prefill_blocks_starts: whether nothing else starts there while a prompt is processed (TGI).
        max_shared_prompt_tokens: longest bulk prompt that it takes beside interactive work; None for no such bound.
    """

    name: str
    pool: str
    budget: ReplicaBudget
    limits: ModelLimits
    overrun_chunk_tokens: int = 0
    profile: str = UNCALIBRATED
    prefill_blocks_starts: bool = False
    max_shared_prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class PoolPolicy:
    """Replicas of one model that serve the same lanes, and the ladder by which they degrade; None for none."""

    name: str
    model: str
    aliases: frozenset[str]
    lanes: frozenset[Lane]
    ladder: Ladder | None = None

    @property
    def shared(self) -> bool:
        """Say whether interactive and bulk work meet on its replicas."""
        return self.lanes >= {Lane.INTERACTIVE, Lane.BULK}

    def serves(self, model: str) -> bool:
        """Say whether a request for `model` may go to this pool."""
        return model == self.model or model in self.aliases


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """Everything that the operator sets; pools keep the order of the configuration."""

    lanes: Mapping[Lane, LanePolicy]
    pools: tuple[PoolPolicy, ...]
    tenants: Mapping[str, TenantPolicy]
    _pools_of: Mapping[tuple[str, Lane], tuple[PoolPolicy, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Note once which pools take what, since each decision asks."""
        models = {name for pool in self.pools for name in (pool.model, *pool.aliases)}
        pools_of = {
            (model, lane): tuple(pool for pool in self.pools if lane in pool.lanes and pool.serves(model))
            for model in models
            for lane in Lane
        }
        object.__setattr__(self, "_pools_of", {kind: pools for kind, pools in pools_of.items() if pools})

    def lanes_of(self, model: str) -> frozenset[Lane]:
        """Return the lanes that the pools of a model take; empty when no pool has the model."""
        return frozenset(lane for lane in Lane if (model, lane) in self._pools_of)

    def pools_of(self, model: str, lane: Lane) -> tuple[PoolPolicy, ...]:
        """Return the pools that take a lane of a model, a name or an alias, in the order of the configuration."""
        return self._pools_of.get((model, lane), ())
