"""A profile is read whole, or refused with every mistake."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.config.catalogue import Catalogue
from llmshed.errors import ExitCode, ProfileError
from llmshed.profile import Profile, parse_profile
from llmshed.profile.parsing import STAND_INS

SMALLEST = """\
schema = "llmshed.profile/1"
name = "small"
version = "1"
[budget]
gross_ceiling_tokens = 96_000
hard_cap_sequences = 64
basis = "declared"
"""


def mistakes_of(text: str) -> list[str]:
    with pytest.raises(ProfileError) as refused:
        parse_profile(text, "p.toml")
    return str(refused.value).splitlines()


def test_the_smallest_profile_has_the_documented_defaults() -> None:
    profile = parse_profile(SMALLEST, "p.toml")

    assert profile.label == "small@1"
    assert (profile.budget.guard_band_ratio, profile.budget.overcommit_ratio) == (0.10, 1.0)
    assert (profile.prefill, profile.decode, profile.latency, profile.output) == (None, None, None, None)
    assert (profile.limits.max_input_tokens, profile.limits.max_total_tokens) == (None, None)
    interactive, bulk = profile.lanes.interactive, profile.lanes.bulk
    assert (interactive.max_input_tokens, interactive.max_output_tokens) == (4096, 1024)
    assert (interactive.ttft_objective_seconds, bulk.ttft_objective_seconds) == (2.0, 120.0)
    assert (interactive.tpot_objective_seconds, bulk.tpot_objective_seconds) == (0.1, 0.1)
    assert (profile.bulk.reserved_max_ratio, profile.bulk.reserved_floor_ratio) == (0.5, 0.05)
    assert (profile.bulk.prefill_cap_ratio, profile.bulk.prefill_floor_ratio) == (None, 0.05)
    assert (profile.windows.seconds, profile.windows.minimum_samples) == (60.0, 20)
    assert profile.fingerprint.engine is None


def test_every_field_is_read() -> None:
    profile = parse_profile(
        SMALLEST
        + """\
guard_band_ratio = 0
overcommit_ratio = 1.25
overcommit_output_ratio = 0.4
preemptions_per_minute = 0
gross_ceiling_low_tokens = 96_000
gross_ceiling_high_tokens = 101_000
rule = "ttft-knee-3"
[prefill]
safe_tokens_per_second = 9000
inflight_tokens = 8192
[decode]
seconds_per_token = 0.05
curve = [{ sequences = 1, seconds_per_token = 0.02 }, { sequences = 64, seconds_per_token = 0.05 }]
[latency]
unloaded_ttft_p50_seconds = 0.1
unloaded_ttft_p95_seconds = 0.2
[output]
p50 = 100
p90 = 300
p99 = 900
[limits]
max_input_tokens = 8191
max_total_tokens = 8192
[lanes.interactive]
max_input_tokens = 2000
[lanes.bulk]
max_output_tokens = 3000
[bulk]
reserved_max_ratio = 1
prefill_cap_ratio = 1
reserved_floor_ratio = 0
prefill_floor_ratio = 1
[windows]
seconds = 30
minimum_samples = 5
[fingerprint]
model_id = "org/model"
model_revision = "abc"
engine = "tgi"
engine_version = "3.3.5"
dtype = "float16"
quantization = "none"
parallelism = "tp=2"
gpu = "L4"
gpu_count = 2
tokenizer_sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
template_sha256 = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
date = 2026-11-30
workload = "mixed"
limits = { max_input_tokens = 4095, max_total_tokens = 4096, max_batch_total_tokens = 1, max_batch_prefill_tokens = 1,
           max_concurrent_requests = 128 }
behaviour = { fixed_prompt_prefill_seconds = 0.4, decode_step_seconds = 0.02 }
""".replace(",\n           ", ", "),
        "p.toml",
    )

    assert profile.model_fields_set == set(Profile.model_fields)
    assert profile.decode is not None
    assert [point.sequences for point in profile.decode.curve] == [1, 64]
    assert profile.fingerprint.model_fields_set == set(type(profile.fingerprint).model_fields)
    assert profile.fingerprint.limits.max_concurrent_requests == 128


def test_every_mistake_is_told_at_once_with_its_line() -> None:
    text = """\
schema = "llmshed.profile/2"
name = "x"
version = 1
[budget]
gross_ceiling_tokens = 100
gross_ceiling_low_tokens = 200
guard_band_ratio = 1.0
hard_cap = 3
basis = "calibrated"
[output]
p50 = 3
p90 = 2
"""
    assert [line.split(" ", 2)[:2] for line in mistakes_of(text)] == [
        ["p.toml:1:", "schema:"],
        ["p.toml:3:", "version:"],
        ["p.toml:4:", "budget.hard_cap_sequences:"],
        ["p.toml:4:", "budget.preemptions_per_minute:"],
        ["p.toml:6:", "budget.gross_ceiling_low_tokens:"],
        ["p.toml:7:", "budget.guard_band_ratio:"],
        ["p.toml:8:", "budget.hard_cap:"],
        ["p.toml:10:", "output.p99:"],
        ["p.toml:11:", "output.p50:"],
    ]


def test_a_syntax_error_has_its_line_and_the_exit_code_of_configuration() -> None:
    with pytest.raises(ProfileError, match=r"^p.toml:2: column \d+: not TOML") as refused:
        parse_profile("schema = 'x'\nname == 1\n", "p.toml")
    assert refused.value.exit_code == ExitCode.CONFIG


def test_the_stand_ins_cover_every_field_without_a_default() -> None:
    schema = Profile.model_json_schema()
    needed = {name for table in (schema, *schema["$defs"].values()) for name in table.get("required", ())}
    assert needed == set(STAND_INS)


def test_the_worked_example_has_the_numbers_of_the_source(repository: Path) -> None:
    profile = parse_profile((repository / "profiles/examples/worked-example.toml").read_text("utf-8"), "w")

    budget = profile.budget
    guard_band_tokens = round(budget.guard_band_ratio * budget.gross_ceiling_tokens)
    assert budget.gross_ceiling_tokens - 58_000 - 8_000 - guard_band_tokens == 20_400
    assert (profile.bulk.reserved_max_ratio, profile.bulk.prefill_cap_ratio) == (1.0, 1.0)
    assert profile.prefill is None
    assert profile.fingerprint.engine is None
    most = profile.limits.max_total_tokens
    assert most is not None
    assert 19_000 + 4_000 <= most < 200_000


def test_every_shipped_profile_is_valid(repository: Path) -> None:
    shipped = [*(repository / "profiles").glob("*.toml"), *(repository / "profiles/examples").glob("*.toml")]
    assert shipped
    for path in shipped:
        parse_profile(path.read_text("utf-8"), str(path))


FIELDS = sorted({str(part) for path in Catalogue(Profile).leaves() for part in path if isinstance(part, str)})
values = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.dates()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(sorted(Profile.model_json_schema()["properties"])), values, max_size=6))
def test_any_data_is_a_profile_or_refused_with_lines(document: dict[str, Any]) -> None:
    import tomli_w  # noqa: PLC0415 - only this test writes TOML

    for line in mistakes_of(tomli_w.dumps(document)):
        assert line.startswith("p.toml:")
        assert line.isprintable()
