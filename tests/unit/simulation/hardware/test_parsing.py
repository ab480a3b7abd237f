"""A replica file is read whole, or refused with every mistake."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.config.catalogue import Catalogue
from llmshed.errors import ExitCode, LlmshedError, ReplicaFileError
from llmshed.simulation.hardware.model import ReplicaFile
from llmshed.simulation.hardware.parsing import STAND_INS, parse_replica
from llmshed.simulation.hardware.sections import Efficiency, Engine, Gpu, Measured, Model


def mistakes_of(text: str) -> list[str]:
    with pytest.raises(ReplicaFileError) as refused:
        parse_replica(text, "r.toml")
    return str(refused.value).splitlines()


def test_the_smallest_file_is_read(replica_text: str) -> None:
    description = parse_replica(replica_text, "r.toml")
    assert (description.name, description.model_id) == ("mine", "org/model")
    assert description.derivation.weight_bytes == 16_060_522_496
    # 0.9 x 85,899,345,920 - 16,060,522,496 - 2,000,000,000 = 59,248,888,832 bytes; by 131,072 bytes a token
    assert description.parameters.kv_tokens == description.derivation.kv_tokens == 452_033


def test_every_mistake_is_told_at_once_with_its_line(replica_text: str) -> None:
    text = (
        replica_text.replace("layers = 32\n", "")
        .replace("kv_heads = 8", "kv_heads = 7")
        .replace("flops_ratio = 0.6", "flops_ratio = 60")
        .replace('mode = "tgi"', 'mode = "tgi"\nmax_num_seq = 3\nmax_model_len = 99_999')
    )
    assert mistakes_of(text) == [
        "r.toml:3: model.layers: is missing; accepted: a whole number, at least 1 and at most 1_000_000",
        "r.toml:8: model.kv_heads: 7 does not divide `model.attention_heads`, 32",
        "r.toml:18: efficiency.flops_ratio: 60 is refused; accepted: a number, above 0 and at most 1",
        "r.toml:25: engine.max_num_seq: unknown setting (did you mean `engine.max_num_seqs`?)",
        "r.toml:26: engine.max_model_len: 99999 is more than `model.context_tokens`, 8192",
        'r.toml:26: engine.max_model_len: is a setting of the mode "vllm"; `engine.mode` is "tgi"',
    ]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("replica/1", "replica/2", '1: schema: "llmshed.replica/2" is refused; accepted: "llmshed.replica/1"'),
        ('name = "mine"', 'name = "Mine!"', '2: name: "Mine!" is refused'),
        ('"org/model"', "7", "4: model.id: 7 is refused"),
        ("parameters = 8_030_261_248", "parameters = 8.03e9", "5: model.parameters: 8030000000.0 is refused"),
        ("parameters = 8_030_261_248", "parameters = true", "5: model.parameters: true is refused"),
        ("flops_per_second = 989.4e12", "flops_per_second = nan", "17: gpu.flops_per_second: nan is refused"),
        ("flops_per_second = 989.4e12", "flops_per_second = inf", "17: gpu.flops_per_second: inf is refused"),
        ("flops_per_second = 989.4e12", "flops_per_second = 0", "17: gpu.flops_per_second: 0 is refused"),
        ("memory_ratio = 0.9", "memory_ratio = 1.1", "21: efficiency.memory_ratio: 1.1 is refused"),
        ("reserve_bytes = 2_000_000_000", "reserve_bytes = -1", "22: efficiency.reserve_bytes: -1 is refused"),
        ("step_seconds = 0.002", "step_seconds = 0", "23: efficiency.step_seconds: 0 is refused"),
        ('mode = "tgi"', 'mode = "sglang"', '25: engine.mode: "sglang" is refused; accepted: "tgi" or "vllm"'),
        (
            'mode = "tgi"',
            'mode = "tgi"\nversion = "9.9.9"',
            "26: engine.version: TGI version '9.9.9' is not",
        ),
        ('mode = "tgi"', 'mode = "tgi"\nmax_best_of = 2_000_000', "26: engine.max_best_of: 2000000 is refused"),
        (
            'mode = "tgi"',
            'mode = "tgi"\naccepted_tokens = 1',
            "accepted_tokens is 1; accepted are 0 to 0, the",
        ),
        ("context_tokens = 8192", "context_tokens = 1", "12: model.context_tokens: 1 is refused"),
        (
            "memory_bytes = 85_899_345_920",
            "memory_bytes = 1_000_000_000_000_000",
            "15: gpu.memory_bytes: 1000000000000000 leaves room for KV of 6866317287 tokens, of 131072 bytes each",
        ),
        ("layers = 32", f"layers = {'9' * 5000}", "6: a number of 5000 digits is longer than any that is read"),
        ("[engine]\n", "[engines]\n", "engines: unknown setting (did you mean `engine`?)"),
        ('mode = "tgi"', 'mode = "tgi"\n[measured]\nkv_tokens = 0', "27: measured.kv_tokens: 0 is refused"),
        ('mode = "tgi"', 'mode = "tgi"\n[measured]\nkv_tokens = 1', "27: measured.kv_tokens: 1 is refused"),
        ("[model]", "[model", "not TOML"),
    ],
)
def test_a_mistake_is_named_with_what_is_accepted(replica_text: str, old: str, new: str, complaint: str) -> None:
    assert old in replica_text
    assert any(complaint in line for line in mistakes_of(replica_text.replace(old, new)))


def test_an_empty_file_tells_what_is_needed() -> None:
    told = mistakes_of("")
    assert [line.split(":")[2].strip() for line in told] == ["efficiency", "engine", "gpu", "model", "name", "schema"]


def test_a_file_that_is_no_replica_ends_as_a_configuration_does(replica_text: str) -> None:
    with pytest.raises(LlmshedError) as refused:
        parse_replica(replica_text.replace("tgi", "none"), "r.toml")
    assert refused.value.exit_code is ExitCode.CONFIG


def test_every_setting_without_a_default_has_a_stand_in() -> None:
    catalogue = Catalogue(ReplicaFile)
    tables = [(), *((name,) for name in ("model", "gpu", "efficiency", "engine", "measured"))]
    needed = {name for table in tables for name in (catalogue.find(table) or {}).get("required", ())}
    assert needed <= set(STAND_INS)


def test_every_setting_says_in_words_what_it_accepts_and_means() -> None:
    catalogue = Catalogue(ReplicaFile)
    assert [path for path in catalogue.leaves() if catalogue.accepted(path) in {"", "a value"}] == []
    fields = [
        field for section in (Model, Gpu, Efficiency, Engine, Measured) for field in section.model_fields.values()
    ]
    assert [field for field in fields if not field.description] == []


@given(st.text(max_size=200))
def test_no_text_fails_in_another_way(text: str) -> None:
    with pytest.raises(ReplicaFileError):
        parse_replica(text, "r.toml")


@given(
    bandwidth=st.floats(1, 1e18),
    flops=st.floats(1, 1e18),
    share=st.floats(0, 1, exclude_min=True),
    memory=st.integers(1, 10**15),
    reserve=st.integers(0, 10**15),
    layers=st.integers(1, 10**6),
    mode=st.sampled_from(["tgi", "vllm"]),
)
def test_every_number_in_its_range_gives_a_replica_or_a_told_reason(
    replica_text: str, bandwidth: float, flops: float, share: float, memory: int, reserve: int, layers: int, mode: str
) -> None:
    text = (
        replica_text.replace("3.35e12", repr(bandwidth))
        .replace("989.4e12", repr(flops))
        .replace("flops_ratio = 0.6", f"flops_ratio = {share!r}")
        .replace("85_899_345_920", str(memory))
        .replace("2_000_000_000", str(reserve))
        .replace("layers = 32", f"layers = {layers}")
        .replace("tgi", mode)
    )
    try:
        told = [f"r.toml: {parse_replica(text, 'r.toml').parameters.kv_tokens}"]
    except ReplicaFileError as refused:
        told = str(refused).splitlines()
    assert told
    assert all(line.startswith("r.toml:") for line in told)
