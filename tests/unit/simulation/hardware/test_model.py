"""What a replica file describes, and the files that ship."""

from pathlib import Path

import pytest

from llmshed.simulation.hardware.model import ReplicaDescription
from llmshed.simulation.hardware.parsing import parse_replica
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.vllm.parameters import VllmParameters


def test_measured_values_take_the_place_of_derived_ones(replica_text: str) -> None:
    text = replica_text + "[measured]\nkv_tokens = 300_000\nstep_seconds = 0.004\nseconds_per_resident_token = 0\n"
    told, derived = parse_replica(text, "r.toml"), parse_replica(replica_text, "r.toml")
    assert told.parameters.kv_tokens == 300_000
    assert (told.parameters.step_times.step_seconds, told.parameters.step_times.seconds_per_resident_token) == (
        0.004,
        0,
    )
    assert told.parameters.step_times.weights_seconds == derived.parameters.step_times.weights_seconds
    assert told.derivation == derived.derivation


def test_the_mode_decides_which_scheduler_is_meant(replica_text: str) -> None:
    vllm = replica_text.replace('mode = "tgi"', 'mode = "vllm"\nmax_num_seqs = 64')
    parameters = parse_replica(vllm, "r.toml").parameters
    assert isinstance(parameters, VllmParameters)
    assert (parameters.max_num_seqs, parameters.max_model_len, parameters.max_num_batched_tokens) == (64, 8192, 8192)
    assert isinstance(parse_replica(replica_text, "r.toml").parameters, ReplicaParameters)


def test_a_measured_cache_makes_room_where_none_is_derived(replica_text: str) -> None:
    small = replica_text.replace("memory_bytes = 85_899_345_920", "memory_bytes = 16_000_000_000")
    description = parse_replica(small + "[measured]\nkv_tokens = 5_000\n", "r.toml")
    assert (description.derivation.kv_tokens, description.parameters.kv_tokens) == (0, 5_000)


SHIPPED = (
    "llama-2-7b-a10g",
    "llama-3-8b-a10g",
    "llama-3-8b-h100",
    "llama-3.1-70b-4xh100",
    "llama-3.1-8b-h100",
    "llama-3.2-1b-rtx3090",
)


def shipped(repository: Path, name: str) -> ReplicaDescription:
    return parse_replica((repository / "profiles" / "replicas" / f"{name}.toml").read_text("utf-8"), name)


def test_six_files_ship(repository: Path) -> None:
    assert sorted(path.stem for path in (repository / "profiles" / "replicas").iterdir()) == sorted(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_file_is_named_as_it_names_itself(repository: Path, name: str) -> None:
    assert shipped(repository, name).name == name


@pytest.mark.parametrize("name", SHIPPED)
def test_every_number_of_a_shipped_file_has_its_source_in_a_comment(repository: Path, name: str) -> None:
    lines = (repository / "profiles" / "replicas" / f"{name}.toml").read_text("utf-8").splitlines()
    bare = []
    for index, line in enumerate(lines):
        told = "#" in line or lines[index - 1].lstrip().startswith("#")
        if "=" in line and line[0] != "#" and any(letter.isdigit() for letter in line.partition("=")[2]) and not told:
            bare.append(line)
    assert [line for line in bare if not line.startswith(("schema", "name", "id", "version", "count"))] == []


def test_the_cache_of_vllm_on_24_gb_is_derived_within_two_percent_of_the_one_that_was_logged(repository: Path) -> None:
    # KV use in the log of the runs moves in steps of 1 / 36,282 blocks of 16 tokens.
    assert shipped(repository, "llama-3.2-1b-rtx3090").parameters.kv_tokens == pytest.approx(36_282 * 16, rel=0.02)


def test_a_70b_on_four_gpus_is_slower_than_an_8b_on_one(repository: Path) -> None:
    large = shipped(repository, "llama-3.1-70b-4xh100").parameters.step_times
    small = shipped(repository, "llama-3-8b-h100").parameters.step_times
    assert large.weights_seconds > 2 * small.weights_seconds
    assert large.seconds_per_linked_token > 0
    assert small.seconds_per_linked_token == 0
