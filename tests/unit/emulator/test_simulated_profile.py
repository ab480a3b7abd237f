"""The shipped profile of the simulated replica says what its default parameters do."""

from importlib import resources

import pytest

from llmshed.emulator import EmulatorSettings
from llmshed.profile import Profile, parse_profile
from llmshed.simulation.cost import StepWork

PARAMETERS = EmulatorSettings().parameters
TIMES = PARAMETERS.step_times


@pytest.fixture
def profile() -> Profile:
    file = resources.files("llmshed.profiles") / "simulated.toml"
    return parse_profile(file.read_text("utf-8"), "simulated.toml")


def test_it_tells_the_limits_that_the_replica_has(profile: Profile) -> None:
    limits = profile.fingerprint.limits
    assert limits.max_batch_total_tokens == PARAMETERS.kv_tokens
    assert limits.max_batch_prefill_tokens == PARAMETERS.max_batch_prefill_tokens
    assert profile.limits.max_input_tokens == limits.max_input_tokens == PARAMETERS.max_input_tokens
    assert profile.limits.max_total_tokens == limits.max_total_tokens == PARAMETERS.max_total_tokens
    assert profile.budget.hard_cap_sequences == limits.max_concurrent_requests == PARAMETERS.max_concurrent_requests
    assert profile.fingerprint.model_id == EmulatorSettings().model_id
    assert profile.fingerprint.engine_version == PARAMETERS.version


def test_its_ceiling_is_the_cache_that_requests_may_hold(profile: Profile) -> None:
    assert profile.budget.gross_ceiling_tokens == PARAMETERS.usable_blocks * PARAMETERS.block_tokens


def test_its_decode_curve_is_the_step_time_model(profile: Profile) -> None:
    assert profile.decode is not None
    for point in profile.decode.curve:
        assert point.seconds_per_token == pytest.approx(
            TIMES.seconds(StepWork(decoding_sequences=point.sequences)), abs=1e-4
        )
    assert profile.decode.curve[-1].sequences == PARAMETERS.max_concurrent_requests
    assert profile.decode.seconds_per_token == profile.decode.curve[-1].seconds_per_token


def test_its_safe_prefill_rate_leaves_the_tpot_objective_standing(profile: Profile) -> None:
    assert profile.prefill is not None
    share = profile.prefill.safe_tokens_per_second * TIMES.seconds_per_prefill_token
    full = TIMES.seconds(StepWork(decoding_sequences=PARAMETERS.max_concurrent_requests))
    assert full / (1 - share) < profile.lanes.interactive.tpot_objective_seconds
    assert profile.prefill.inflight_tokens == 2 * PARAMETERS.max_batch_prefill_tokens


def test_its_idle_latency_is_that_of_one_prefill_step(profile: Profile) -> None:
    assert profile.latency is not None
    assert profile.latency.unloaded_ttft_p50_seconds == pytest.approx(
        TIMES.seconds(StepWork(prefill_tokens=512)), abs=1e-3
    )
    full = TIMES.seconds(StepWork(prefill_tokens=PARAMETERS.max_batch_prefill_tokens))
    assert profile.latency.unloaded_ttft_p95_seconds == pytest.approx(full, abs=1e-3)
