"""The profiles of the benchmark are what the sweep finds, and what the arithmetic of the replica allows."""

from pathlib import Path

import pytest
import sweep

from llmshed.profile import Profile
from llmshed.profile.parsing import parse_profile
from llmshed.simulation.hardware.parsing import parse_replica
from llmshed.simulation.parameters import ReplicaParameters


def profile(repository: Path, name: str) -> Profile:
    path = repository / "bench" / "profiles" / f"{name}.toml"
    return parse_profile(path.read_text("utf-8"), path.name)


def parameters(repository: Path, name: str) -> ReplicaParameters:
    path = repository / "profiles" / "replicas" / f"{name}.toml"
    found = parse_replica(path.read_text("utf-8"), path.name).parameters
    assert isinstance(found, ReplicaParameters)
    return found


@pytest.mark.soak
@pytest.mark.timeout(300)  # half a minute of CPU for an H100
@pytest.mark.parametrize("name", sweep.NAMES)
def test_a_profile_is_derived_again_to_the_last_digit(repository: Path, name: str) -> None:
    written = repository / "bench" / "profiles" / f"{name}.toml"
    assert sweep.profile_of(repository / "profiles" / "replicas" / f"{name}.toml") == written.read_text("utf-8")


@pytest.mark.parametrize("name", sweep.NAMES)
def test_the_gross_ceiling_is_what_the_kv_cache_holds_to_within_one_request(repository: Path, name: str) -> None:
    kv_tokens = parameters(repository, name).kv_tokens
    gross = profile(repository, name).budget.gross_ceiling_tokens
    assert kv_tokens - (4096 + 1024) < gross <= kv_tokens


@pytest.mark.parametrize("name", sweep.NAMES)
def test_prompts_are_not_safe_faster_than_an_idle_replica_works_through_them(repository: Path, name: str) -> None:
    prefill = profile(repository, name).prefill
    assert prefill is not None
    # With 0.1 s a token at most, the fixed part of each step and a token's own work are gone before any prompt.
    times = parameters(repository, name).step_times
    left = 1 - (times.step_seconds + times.weights_seconds) / 0.1
    assert 0.5 * left < prefill.safe_tokens_per_second * times.seconds_per_prefill_token < 1


@pytest.mark.parametrize("name", sweep.NAMES)
def test_the_decode_curve_is_a_step_with_that_many_sequences(repository: Path, name: str) -> None:
    decode = profile(repository, name).decode
    assert decode is not None
    times = parameters(repository, name).step_times
    for point in decode.curve:
        each = times.seconds_per_decoding_sequence + times.seconds_per_sequence
        decodes = times.step_seconds + times.weights_seconds + point.sequences * each
        # Contexts of 17 to 272 tokens are read, and 16 tokens of prompt for each 256 of output.
        read = point.sequences * 272 * times.seconds_per_resident_token
        prompts = point.sequences * 17 / 255 * times.seconds_per_prefill_token
        assert decodes < point.seconds_per_token < decodes + read + prompts


def test_nothing_is_found_on_a_replica_that_holds_no_objective() -> None:
    slow = ReplicaParameters(version="3.3.5")
    lane = sweep.THRESHOLDS.model_copy(update={"tpot_objective_seconds": 0.001})
    with pytest.raises(ValueError, match=r"not even one Shape\(.*\) holds its objectives on this replica"):
        sweep.Sweep(slow, lane).find()
