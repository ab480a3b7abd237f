"""The limit checks, against the tables of TGI's router/src/validation.rs at its tags."""

import pytest

from llmshed.simulation.limits import InputTooLong, OutputPlan, TotalTooLong, plan_output
from llmshed.simulation.parameters import ReplicaParameters


def replica(version: str) -> ReplicaParameters:
    return ReplicaParameters(
        version=version, max_input_tokens=4095, max_total_tokens=8192, max_batch_prefill_tokens=4096, kv_tokens=16_384
    )


@pytest.mark.parametrize(
    ("version", "asked", "chunk", "ceiling"),
    [
        # Absent: the router fills what the total leaves; the default of 100 is put in where the field is read.
        ("1.4.5", None, 8092, 8092),
        ("2.4.0", None, 8092, 8092),
        ("3.0.0", None, 1024, 8092),
        ("3.1.0", None, 1024, 8092),
        ("3.1.1", None, 1024, 8092),
        ("3.3.5", None, 1024, 8092),
        # Given: one piece before 3.1.1, chunks of 1,024 from there.
        ("1.4.5", 1500, 1500, 1500),
        ("2.4.0", 1500, 1500, 1500),
        ("3.1.0", 1500, 1500, 1500),
        ("3.1.1", 1500, 1024, 1500),
        ("3.3.5", 1500, 1024, 1500),
        ("3.3.5", 1024, 1024, 1024),
        ("3.3.5", 7, 7, 7),
        # Only the chunk is checked from 3.1.1: a ceiling far above the total is let through.
        ("3.3.5", 100_000, 1024, 100_000),
    ],
)
def test_a_prompt_of_100_tokens_may_have_this_much_output(
    version: str, asked: int | None, chunk: int, ceiling: int
) -> None:
    assert plan_output(replica(version), 100, asked, None) == OutputPlan(100, chunk, ceiling)


@pytest.mark.parametrize("version", ["1.4.5", "2.4.0", "3.0.0", "3.1.0"])
def test_older_versions_refuse_a_ceiling_above_the_total(version: str) -> None:
    assert plan_output(replica(version), 100, 100_000, None) == TotalTooLong(8192, 100, 100_000)


def test_the_total_is_checked_before_the_input() -> None:
    assert plan_output(replica("3.3.5"), 8000, 500, None) == TotalTooLong(8192, 8000, 500)
    assert plan_output(replica("3.3.5"), 8000, 100, None) == InputTooLong(4095, 8000)
    assert plan_output(replica("3.3.5"), 9000, None, None) == TotalTooLong(8192, 9000, 0)


def test_the_limits_themselves_are_accepted() -> None:
    assert plan_output(replica("3.3.5"), 4095, 1024, None) == OutputPlan(4095, 1024, 1024)
    assert plan_output(replica("2.4.0"), 4095, 4097, None) == OutputPlan(4095, 4097, 4097)
    assert plan_output(replica("2.4.0"), 4095, 4098, None) == TotalTooLong(8192, 4095, 4098)


def test_truncate_shortens_a_prompt_and_never_lengthens_it() -> None:
    assert plan_output(replica("3.3.5"), 50_000, 10, 4000) == OutputPlan(4000, 10, 10)
    assert plan_output(replica("3.3.5"), 50, 10, 4000) == OutputPlan(50, 10, 10)
