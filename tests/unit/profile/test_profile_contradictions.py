"""Fields of a profile that are valid one by one but not together."""

import pytest

from llmshed.errors import ProfileError
from llmshed.profile import parse_profile

HEAD = 'schema = "llmshed.profile/1"\nname = "p"\nversion = "1"\n'
BUDGET = '[budget]\ngross_ceiling_tokens = 1000\nhard_cap_sequences = 8\nbasis = "declared"\n'
LATENCY = "[latency]\nunloaded_ttft_p50_seconds = {}\nunloaded_ttft_p95_seconds = {}\n"
CURVE = "[decode]\nseconds_per_token = 0.1\ncurve = [{}]\n"
POINT = "{{ sequences = {}, seconds_per_token = 0.1 }}"

CASES = {
    "lower bound above the ceiling": (f"{BUDGET}gross_ceiling_low_tokens = 1001", "budget.gross_ceiling_low_tokens"),
    "upper bound below the ceiling": (f"{BUDGET}gross_ceiling_high_tokens = 999", "budget.gross_ceiling_tokens"),
    "guard band of everything": (f"{BUDGET}guard_band_ratio = 1", "budget.guard_band_ratio"),
    "overcommit below 1": (f"{BUDGET}overcommit_ratio = 0.9", "budget.overcommit_ratio"),
    "overcommit without its ratio": (f"{BUDGET}overcommit_ratio = 1.1", "budget.overcommit_output_ratio"),
    "measured cap without preemptions": (
        BUDGET.replace("declared", "calibrated"), "budget.preemptions_per_minute",
    ),
    "curve with a point twice": (
        BUDGET + CURVE.format(f"{POINT.format(1)}, {POINT.format(1)}"), "decode.curve[1].sequences",
    ),
    "curve that descends": (
        BUDGET + CURVE.format(f"{POINT.format(2)}, {POINT.format(4)}, {POINT.format(3)}"), "decode.curve[2].sequences",
    ),
    "median above the 95th percentile": (BUDGET + LATENCY.format(0.3, 0.2), "latency.unloaded_ttft_p50_seconds"),
    "90th percentile above the 99th": (f"{BUDGET}[output]\np50 = 1\np90 = 3\np99 = 2", "output.p90"),
    "input limit above the total": (
        f"{BUDGET}[limits]\nmax_input_tokens = 4097\nmax_total_tokens = 4096", "limits.max_input_tokens",
    ),
    "default above the lane's maximum": (
        f"{BUDGET}[lanes.bulk]\nmax_output_tokens = 1024\ndefault_output_tokens = 1025",
        "lanes.bulk.default_output_tokens",
    ),
    "default that leaves no input": (
        f"{BUDGET}[limits]\nmax_total_tokens = 1024", "lanes.bulk.default_output_tokens",
    ),
    "reserved floor above its maximum": (f"{BUDGET}[bulk]\nreserved_floor_ratio = 0.51", "bulk.reserved_floor_ratio"),
    "prefill floor above its cap": (
        f"{BUDGET}[bulk]\nprefill_cap_ratio = 0.3\nprefill_floor_ratio = 0.31", "bulk.prefill_floor_ratio",
    ),
    "share above the whole": (f"{BUDGET}[bulk]\nreserved_max_ratio = 1.01", "bulk.reserved_max_ratio"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "path"), CASES.values(), ids=CASES)
def test_each_is_the_one_mistake_told_at_its_field(text: str, path: str) -> None:
    with pytest.raises(ProfileError) as refused:
        parse_profile(HEAD + text, "p.toml")

    (line,) = str(refused.value).splitlines()
    assert line.split(": ")[1] == path


@pytest.mark.parametrize(
    "text",
    [
        f"{BUDGET}gross_ceiling_low_tokens = 1000\ngross_ceiling_high_tokens = 1000",
        f"{BUDGET}overcommit_ratio = 1.1\novercommit_output_ratio = 0.3",
        BUDGET.replace("declared", "calibrated") + "preemptions_per_minute = 0",
        f"{BUDGET}[bulk]\nreserved_floor_ratio = 0.5\nprefill_floor_ratio = 0.3",
        BUDGET + LATENCY.format(0.2, 0.2),
    ],
)
def test_bounds_that_meet_are_taken(text: str) -> None:
    parse_profile(HEAD + text, "p.toml")
