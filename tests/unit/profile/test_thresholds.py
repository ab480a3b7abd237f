"""The thresholds that a profile was made for, beside those in force."""

import pytest

from llmshed.config.lanes import BulkLane, BulkThresholds, InteractiveLane, InteractiveThresholds
from llmshed.profile import Profile, parse_profile
from llmshed.profile.thresholds import differing_thresholds, profile_thresholds_version, thresholds_version

HEAD = """
schema = "llmshed.profile/1"
name = "p"
version = "3"
[budget]
gross_ceiling_tokens = 50_000
hard_cap_sequences = 128
basis = "declared"
"""


def profile(lanes: str = "") -> Profile:
    return parse_profile(HEAD + lanes, "p.toml")


def test_each_stated_threshold_that_differs_is_one_sentence() -> None:
    made_for = profile(
        "[lanes.interactive]\nmax_input_tokens = 2048\nttft_objective_seconds = 2.0\n"
        "[lanes.bulk]\nmax_output_tokens = 4096"
    )
    told = list(differing_thresholds(made_for, InteractiveLane(ttft_objective_seconds=1.5), BulkLane()))
    assert told == [
        "lanes.interactive.max_input_tokens is 4,096; profile p@3 was made for 2,048",
        "lanes.interactive.ttft_objective_seconds is 1.5; profile p@3 was made for 2.0",
        "lanes.bulk.max_output_tokens is unset; profile p@3 was made for 4,096",
    ]


def test_what_a_profile_does_not_state_is_no_difference() -> None:
    assert not list(differing_thresholds(profile(), InteractiveLane(max_input_tokens=1), BulkLane()))


@pytest.mark.parametrize("name", InteractiveThresholds.model_fields)
def test_every_threshold_changes_the_version(name: str) -> None:
    changed = InteractiveThresholds.model_validate({name: 7})
    assert thresholds_version(changed, BulkThresholds()) != thresholds_version(
        InteractiveThresholds(), BulkThresholds()
    )


def test_the_version_is_that_of_the_thresholds_alone() -> None:
    plain = thresholds_version(InteractiveThresholds(), BulkThresholds())
    assert thresholds_version(InteractiveLane(queue_requests=1), BulkLane(queue_share_ratio=0.5)) == plain
    assert profile_thresholds_version(profile()) == plain
    assert plain == thresholds_version(InteractiveThresholds(max_input_tokens=4096), BulkThresholds())
    assert len(plain) == 12
    assert thresholds_version(InteractiveThresholds(), BulkThresholds(max_input_tokens=8)) != plain
