"""In which fields profiles differ, and that each is for what is said of it."""

from typing import Any

import pytest

from llmshed.admission.settings import EngineLimits, EngineManners, replica_spec
from llmshed.config.settings import Config
from llmshed.gateway.profile_file import simulated_profile
from llmshed.profile import Profile
from llmshed.profile.differences import Use, differences, fields_of, use_of

CONFIG = Config.model_validate({"pools": [{"replicas": [{"name": "r", "url": "simulated:"}]}]}, strict=False)
CHANGED: dict[str, Any] = {
    "budget.gross_ceiling_tokens": 50_000,
    "budget.guard_band_ratio": 0.2,
    "budget.hard_cap_sequences": 100,
    "prefill.safe_tokens_per_second": 3_000.0,
    "prefill.inflight_tokens": 4_096,
    "decode.seconds_per_token": 0.04,
    "latency.unloaded_ttft_p95_seconds": 0.6,
    "limits.max_input_tokens": 4_000,
    "limits.max_total_tokens": 8_191,
    "bulk.reserved_max_ratio": 0.4,
    "bulk.reserved_floor_ratio": 0.1,
    "bulk.prefill_cap_ratio": 0.2,
    "bulk.prefill_floor_ratio": 0.1,
    "budget.rule": "any",
    "budget.gross_ceiling_low_tokens": 40_000,
    "latency.unloaded_ttft_p50_seconds": 0.1,
    "lanes.interactive.ttft_objective_seconds": 1.0,
    "lanes.bulk.default_output_tokens": 512,
    "windows.seconds": 30.0,
    "fingerprint.gpu": "NVIDIA L4",
    "fingerprint.workload": "any",
    "fingerprint.limits.max_batch_prefill_tokens": 8_192,
    "fingerprint.behaviour.decode_step_seconds": 0.03,
    "budget.overcommit_output_ratio": 0.5,
}


def changed(field: str, value: Any) -> Profile:
    body = simulated_profile().model_dump(by_alias=True)
    table = body
    *tables, name = field.split(".")
    for part in tables:
        table = table[part]
    table[name] = value
    return Profile.model_validate(body)


def spec(profile: Profile) -> Any:
    limits, manners = EngineLimits(128, 8191, 8192, None), EngineManners(1024, prefill_blocks_starts=True)
    return replica_spec(CONFIG, CONFIG.pools[0], "r", limits, manners, profile)


@pytest.mark.parametrize("field", CHANGED)
def test_a_field_is_for_admission_where_it_changes_what_a_replica_lends(field: str) -> None:
    other = changed(field, CHANGED[field])
    (difference,) = differences(simulated_profile(), other)
    assert (difference.field, difference.other) == (field, CHANGED[field])
    assert (spec(other) != spec(simulated_profile())) == (difference.use is Use.ADMISSION)


def test_the_preemption_budget_is_for_admission_by_way_of_the_signals() -> None:
    assert use_of("budget.preemptions_per_minute") is Use.ADMISSION


@pytest.mark.parametrize(
    ("field", "use"),
    [
        ("decode.curve[0].sequences", Use.LIKENESS),
        ("fingerprint.engine_version", Use.LIKENESS),
        ("fingerprint.limits.max_total_tokens", Use.LIKENESS),
        ("fingerprint.behaviour.fixed_prompt_tokens", Use.LIKENESS),
        ("fingerprint.date", Use.RECORD),
        ("fingerprint.workload", Use.RECORD),
        ("lanes.interactive.max_input_tokens", Use.THRESHOLDS),
        ("output.p50", Use.RECORD),
        ("version", Use.RECORD),
    ],
)
def test_other_fields_are_compared_or_told(field: str, use: Use) -> None:
    assert use_of(field) is use


def test_equal_profiles_do_not_differ_and_absent_sections_are_told_by_their_fields() -> None:
    profile = simulated_profile()
    assert not list(differences(profile, profile))
    without = profile.model_copy(update={"decode": None})
    lost = {difference.field: difference.other for difference in differences(profile, without)}
    assert lost["decode.seconds_per_token"] is None
    assert "decode.curve[3].sequences" in lost
    assert {d.field: d.one for d in differences(without, profile)} == dict.fromkeys(lost)
    assert fields_of(without)["decode"] is None
