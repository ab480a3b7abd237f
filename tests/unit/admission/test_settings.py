"""From configuration, profile and engine to the numbers that admission decides by."""

from typing import Any

import pytest

from llmshed.admission.policy import UNCALIBRATED, ReplicaSpec
from llmshed.admission.request import Intent, Lane, PriorityClass
from llmshed.admission.settings import (
    ANONYMOUS,
    EngineLimits,
    EngineManners,
    admission_policy,
    lane_policies,
    max_residence_seconds,
    model_limits,
    replica_spec,
    spec_warnings,
)
from llmshed.config.pools import PoolSettings
from llmshed.config.settings import Config
from llmshed.profile import Profile, parse_profile

TOLD = EngineLimits(max_concurrent_requests=128, max_input_tokens=8_191, max_total_tokens=8_192)


def config(**pool: Any) -> Config:
    given = {"replicas": ({"name": "r1", "url": "http://127.0.0.1:3000"},)} | pool
    return Config.model_validate({"pools": (given,)})


LATENCY = "[latency]\nunloaded_ttft_p50_seconds = 0.5\nunloaded_ttft_p95_seconds = 0.75\n"


def profile(extra: str = "", budget: str = "") -> Profile:
    return parse_profile(
        f"""
        schema = "llmshed.profile/1"
        name = "h100"
        version = "3"
        [budget]
        gross_ceiling_tokens = 96_000
        hard_cap_sequences = 200
        basis = "declared"
        {budget}
        {extra}
        """,
        "profile.toml",
    )


def spec(made: Config, engine: EngineLimits = TOLD, given: Profile | None = None, overrun: int = 0) -> ReplicaSpec:
    return replica_spec(made, made.pools[0], "r1", engine, EngineManners(overrun), given)


def test_a_profile_gives_the_numbers() -> None:
    got = spec(
        config(),
        given=profile("[prefill]\nsafe_tokens_per_second = 9000\n[decode]\nseconds_per_token = 0.03"),
        overrun=1_024,
    )
    assert (got.profile, got.overrun_chunk_tokens) == ("h100@3", 1_024)
    assert got.budget.safe_budget_tokens == 86_400
    assert got.budget.hard_cap_sequences == 200
    assert (got.budget.prefill_tokens_per_second, got.budget.decode_seconds_per_token) == (9_000, 0.03)
    assert (got.limits.max_input_tokens, got.limits.max_total_tokens) == (8_191, 8_192)


def test_the_pools_own_hard_cap_and_context_win() -> None:
    got = spec(config(max_concurrent_sequences=16, max_total_tokens=4_000), given=profile())
    assert got.budget.hard_cap_sequences == 16
    assert (got.limits.max_input_tokens, got.limits.max_total_tokens) == (3_999, 4_000)


def test_the_tightest_limit_counts() -> None:
    limits = model_limits(None, TOLD, profile("[limits]\nmax_total_tokens = 6_000\nmax_input_tokens = 100"))
    assert (limits.max_input_tokens, limits.max_total_tokens) == (100, 6_000)
    assert model_limits(None, EngineLimits(), None).max_total_tokens == 4_096


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.07, 0.333, 0.5, 0.99])
@pytest.mark.parametrize("total", [1, 2, 4_096, 8_192, 131_072])
def test_uncalibrated_the_safe_budget_is_one_full_context(ratio: float, total: int) -> None:
    made = config().model_copy(update={"admission": config().admission.model_copy(update={"guard_band_ratio": ratio})})
    got = spec(made, EngineLimits(max_total_tokens=total + 1, max_concurrent_requests=7))
    assert got.profile == UNCALIBRATED
    assert got.budget.safe_budget_tokens == total + 1
    assert got.budget.hard_cap_sequences == 7


def test_uncalibrated_takes_what_is_configured_then_what_is_told() -> None:
    told = EngineLimits(max_total_tokens=8_192, max_batch_total_tokens=50_000)
    assert spec(config(), told).budget.gross_ceiling_tokens == 50_000
    assert spec(config(gross_ceiling_tokens=40_000), told).budget.gross_ceiling_tokens == 40_000


def test_an_operator_is_warned() -> None:
    assert "uncalibrated" in spec_warnings(spec(config()), TOLD, None)[0]
    capped = spec(config(max_concurrent_sequences=129))
    assert any("max_concurrent_requests is 128" in w for w in spec_warnings(capped, TOLD, None))
    given = profile(budget="overcommit_ratio = 1.5\novercommit_output_ratio = 0.4")
    got = spec(config(max_concurrent_sequences=128), given=given)
    (warning,) = spec_warnings(got, TOLD, given)
    assert "overcommit of 1.5" in warning
    assert got.budget.gross_ceiling_tokens == 96_000
    assert spec_warnings(spec(config(max_concurrent_sequences=1), given=profile()), TOLD, profile()) == ()


def test_without_tenants_everybody_is_anonymous() -> None:
    policy = admission_policy(config())
    assert set(policy.tenants) == {ANONYMOUS}
    assert policy.tenants[ANONYMOUS].top_class is PriorityClass.NORMAL


def test_tenants_and_pools_are_taken_over() -> None:
    made = Config.model_validate(
        {
            "tenants": (
                {
                    "name": "acme",
                    "keys_file": "/k",
                    "intents": ("bulk",),
                    "default_intent": "bulk",
                    "priority_class": "low",
                    "weight": 2.5,
                    "max_concurrent_requests": 3,
                    "max_reserved_tokens": 9_000,
                },
            ),
            "pools": ({"lanes": ("bulk",), "replicas": ({"name": "r1", "url": "simulated:"},)},),
        }
    )
    policy = admission_policy(made, {"main": "org/model"})
    (pool,) = policy.pools
    assert (pool.model, pool.lanes) == ("org/model", frozenset({Lane.BULK}))
    assert pool.serves("org/model")
    assert pool.serves("tgi")
    tenant = policy.tenants["acme"]
    assert (tenant.intents, tenant.default_intent) == (frozenset({Intent.BULK}), Intent.BULK)
    assert (tenant.top_class, tenant.weight) == (PriorityClass.LOW, 2.5)
    assert (tenant.max_concurrent_requests, tenant.max_reserved_tokens) == (3, 9_000)


def test_the_lanes_of_the_source_text_are_the_defaults() -> None:
    lanes = lane_policies(config().lanes.interactive, config().lanes.bulk)
    assert (lanes[Lane.INTERACTIVE].max_input_tokens, lanes[Lane.INTERACTIVE].max_output_tokens) == (4_096, 1_024)
    assert lanes[Lane.BULK].max_input_tokens is None


def test_a_named_model_wins_over_the_told_one() -> None:
    assert isinstance(PoolSettings.model_fields["model"].default, str)
    (pool,) = admission_policy(config(model="mine"), {"main": "org/model"}).pools
    assert pool.model == "mine"


def test_a_lane_waits_for_one_and_a_half_times_its_share_unless_told_otherwise() -> None:
    lanes = Config.model_validate({"pools": config().pools, "lanes": {"bulk": {"max_residence_seconds": 40.0}}}).lanes

    assert max_residence_seconds(lanes.interactive) == pytest.approx(1.5 * 0.3 * 2.0)
    assert max_residence_seconds(lanes.bulk) == 40


def test_a_long_prompt_on_a_shared_replica_leaves_the_next_one_its_objective() -> None:
    measured = profile("[prefill]\nsafe_tokens_per_second = 1_000\n" + LATENCY)
    made = config()
    pool = made.pools[0]
    separate = pool.model_copy(update={"lanes": ("bulk",)})
    tgi = EngineManners(prefill_blocks_starts=True)

    assert replica_spec(made, pool, "r", TOLD, tgi, measured).max_shared_prompt_tokens == 1_250
    assert replica_spec(made, separate, "r", TOLD, tgi, measured).max_shared_prompt_tokens is None
    assert replica_spec(made, pool, "r", TOLD, EngineManners(), measured).max_shared_prompt_tokens is None
    assert replica_spec(made, pool, "r", TOLD, tgi, profile()).max_shared_prompt_tokens is None
