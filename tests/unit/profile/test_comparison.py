"""What was measured against what is seen, field by field."""

import pytest

from llmshed.profile.comparison import (
    KINDS,
    Compared,
    Fact,
    Kind,
    Match,
    by_kind,
    compare,
    contradicted,
    measured_facts,
    worst,
)
from llmshed.profile.fingerprint import Behaviour, EngineLimits, Fingerprint


def found(field: str, measured: dict[str, Fact], told: dict[str, Fact], declared: dict[str, Fact]) -> Match:
    return next(one.match for one in compare(measured, told, declared) if one.field == field)


@pytest.mark.parametrize("field", KINDS)
def test_each_field_matches_differs_or_is_unverified(field: str) -> None:
    assert found(field, {field: "a"}, {field: "a"}, {}) is Match.MATCH
    assert found(field, {field: "a"}, {field: "b"}, {}) is Match.MISMATCH
    assert found(field, {field: "a"}, {}, {}) is Match.UNVERIFIED
    assert found(field, {}, {field: "a"}, {}) is Match.UNVERIFIED
    assert found(field, {}, {}, {}) is Match.UNVERIFIED


def test_a_declaration_stands_in_for_what_is_not_told_and_never_outranks_what_is() -> None:
    assert found("gpu", {"gpu": "L4"}, {}, {"gpu": "L4"}) is Match.MATCH
    assert found("gpu", {"gpu": "L4"}, {}, {"gpu": "A10G"}) is Match.MISMATCH
    assert found("gpu", {"gpu": "L4"}, {"gpu": "A10G"}, {"gpu": "L4"}) is Match.MISMATCH
    assert contradicted({"gpu": "A10G"}, {"gpu": "L4", "dtype": "float16"}) == (
        "gpu is declared as L4, and the replica tells A10G",
    )


@pytest.mark.parametrize(
    ("one", "other", "match"),
    [
        ("float16", "torch.float16", Match.MATCH),
        ("NVIDIA L4", "nvidia l4 ", Match.MATCH),
        ("float16", "bfloat16", Match.MISMATCH),
        ("3.3.5", "3.3.6-dev0", Match.MISMATCH),
        (8192, 8192, Match.MATCH),
        (8192, 4096, Match.MISMATCH),
    ],
)
def test_spelling_is_no_difference_and_anything_else_is(one: Fact, other: Fact, match: Match) -> None:
    assert found("dtype", {"dtype": one}, {"dtype": other}, {}) is match


def test_a_fingerprint_gives_the_facts_that_it_records() -> None:
    fingerprint = Fingerprint(
        model_id="org/m",
        gpu_count=2,
        workload="any",
        limits=EngineLimits(max_total_tokens=8192),
        behaviour=Behaviour(decode_step_seconds=0.01),
    )
    assert measured_facts(fingerprint) == {"model_id": "org/m", "gpu_count": 2, "limits.max_total_tokens": 8192}
    assert measured_facts(Fingerprint()) == {}


def test_the_kinds_cover_every_field_of_a_fingerprint_that_identifies() -> None:
    flat = set(Fingerprint.model_fields) - {"limits", "behaviour", "date", "workload"}
    assert set(KINDS) == flat | {f"limits.{name}" for name in EngineLimits.model_fields}


def test_a_kind_is_as_bad_as_its_worst_field() -> None:
    compared = compare({"model_id": "m", "gpu": "L4", "dtype": "a"}, {"model_id": "m", "gpu": "A10G", "dtype": "a"}, {})
    kinds = by_kind(compared)
    assert kinds[Kind.HARDWARE] is Match.MISMATCH
    assert kinds[Kind.MODEL] is Match.UNVERIFIED  # its revision is not known
    assert worst([Match.MATCH, Match.MATCH]) is Match.MATCH
    assert worst([]) is Match.UNVERIFIED


def test_a_difference_is_told_with_both_values() -> None:
    assert str(Compared("gpu", Match.MISMATCH, "L4", "A10G")) == "gpu: L4 in the profile, A10G now"
    shown = str(Compared("limits.max_total_tokens", Match.UNVERIFIED, 8192, None))
    assert shown == "limits.max_total_tokens: 8,192 in the profile, unknown now"
