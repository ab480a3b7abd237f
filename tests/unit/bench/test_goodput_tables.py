"""Rows of the goodput bench as text and as tables, from figures that can be divided in the head."""

import pytest
from goodput_cases import SCALES, STEP_TIME_ERRORS
from goodput_rows import Row, from_csv, to_csv
from goodput_tables import POLICIES, drawing, tables

PLACE = ("azure_conv", "llama-3-8b-a10g", "pow2")


def row(policy: str, scale: float, good_tokens: float, clients: str = "none", error: float = 0.0) -> Row:
    return Row(
        trace=PLACE[0],
        replica=PLACE[1],
        replicas=2,
        begin_seconds=0.0,
        seconds=100.0,
        hurry=4,
        ceiling=PLACE[2],
        policy=policy,
        clients=clients,
        step_time_error=error,
        scale=scale,
        rate=3.0 * scale,
        offered_requests=2.5 * scale,
        feasible_share=0.95,
        good_requests=2.0,
        good_tokens=good_tokens,
        output_tokens=700.0,
        attainment=0.8 / scale,
        q1_good_tokens=good_tokens / 2,
        q2_good_tokens=good_tokens / 4,
        q3_good_tokens=good_tokens / 4,
        q4_good_tokens=0.0,
        ttft_p95_seconds=None if policy == "none" else 1.25,
        tpot_p95_seconds=0.06,
    )


@pytest.fixture
def rows() -> list[Row]:
    tokens = {policy: 1000.0 - 100 * place for place, policy in enumerate(reversed(POLICIES))}
    measured = [row(policy, scale, tokens[policy]) for policy in POLICIES for scale in SCALES]
    measured += [row(policy, scale, 250.0, "sdk") for policy in ("ours", "none") for scale in SCALES]
    measured += [
        row(policy, scale, 500.0, error=error)
        for policy in ("ours", "oracle")
        for scale in SCALES
        for error in STEP_TIME_ERRORS
    ]
    return measured


def test_rows_come_back_from_their_text(rows: list[Row]) -> None:
    assert from_csv(to_csv(rows)) == rows


def test_goodput_is_told_in_percent_of_the_oracles_at_1x(rows: list[Row]) -> None:
    head, _, line = tables(rows)["goodput"].splitlines()
    cells = dict(zip(head.split(" | "), line.split(" | "), strict=True))
    assert cells["`ours`"] == "40 / 40 / 40 / 40"
    assert cells["`smallest_first`"] == "90 / 90 / 90 / 90"
    assert cells["`oracle` |"] == "100 / 100 / 100 / 100 |"


def test_the_case_is_told_with_its_1x(rows: list[Row]) -> None:
    assert tables(rows)["cases"].splitlines()[2] == (
        "| azure_conv | 100 s in 25 s | 2 x llama-3-8b-a10g | pow2 | 2.50 | 95 % | 1,000 | 80 % |"
    )


def test_attainment_falls_by_scale_and_mix_and_latency_are_those_of_the_highest(rows: list[Row]) -> None:
    told = tables(rows)
    assert "| azure_conv | A10G | 80 / 40 / 16 / 8 |" in told["attainment"]
    assert "| 50 / 25 / 25 / 0 |" in told["mix"]
    assert "| 1.25 / 0.060 | - / 0.060 |" in told["latency"]


def test_wrong_step_times_and_retries_stand_beside_the_right_ones(rows: list[Row]) -> None:
    told = tables(rows)
    assert "| 50 / 50 / 50 / 50 | 40 / 40 / 40 / 40 | 50 / 50 / 50 / 50 |" in told["errors"]
    assert "| 40 / 40 / 40 / 40 | 25 / 25 / 25 / 25 |" in told["clients"]


def test_the_drawing_names_every_policy_and_says_where_it_ends(rows: list[Row]) -> None:
    pytest.importorskip("matplotlib")
    text = drawing(rows, PLACE, "one")
    assert all(policy in text for policy in POLICIES)
    assert "At 10x: ours 40 %" in text
    assert text == drawing(rows, PLACE, "one")
