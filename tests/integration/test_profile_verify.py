"""`llmshed profile verify` against a replica over HTTP."""

from pathlib import Path

import pytest

from conftest import Cli
from fakes.profiles import BUDGET, written
from fakes.simulated_process import occupied, simulated_process
from llmshed.errors import ExitCode

pytestmark = pytest.mark.slow
MEASURED = f"""{BUDGET}
[lanes.interactive]
tpot_objective_seconds = 0.1
[fingerprint]
engine = "tgi"
engine_version = "3.3.4"
workload = "64/64*3,256/32"
[fingerprint.behaviour]
decode_step_seconds = 1.5
"""
SMALL = MEASURED.replace("40_000", "3_000")


def test_both_levels_are_told_and_that_it_is_another_replica(cli: Cli, tmp_path: Path) -> None:
    options = ("--output-mean", "ceiling", "--step-seconds", "0.002", "--prefill-tokens-per-second", "200000")
    with simulated_process(*options) as url:
        ran = cli("profile", "verify", url, "--profile", written(tmp_path, SMALL), "--max-duration", "10", "--json")
    assert ran.exit_code == ExitCode.CONFIG
    told = ran.json()
    assert (told["schema"], told["profile"]) == ("llmshed.profile_verify/1", "measured@7")
    assert told["ended"] == "done"
    assert told["mix"] == "64/64*3,256/32"
    # How much is seen within so short a time is the machine's doing; what follows from it is tested in virtual time.
    assert told["conclusion"] in {"too_low", "holds", "unsure"}
    assert [told[name]["tokens"] for name in ("ceiling", "above")] == pytest.approx([3000, 3300])
    assert told["ceiling"]["late"]["judged"] > 0
    assert told["ceiling"]["late"]["low_ratio"] < 0.05
    assert {one["field"]: one["match"] for one in told["fingerprint"]}["engine_version"] == "mismatch"
    assert [(one["kind"], one["match"]) for one in told["behaviour"]] == [
        ("prefill_pace", "unverified"),
        ("decode_pace", "mismatch"),
    ]
    assert "not the replica that was measured: engine_version: 3.3.4 in the profile, 3.3.5 now" in ran.stderr
    assert "at most" in ran.stderr


def test_a_replica_that_others_use_is_left_alone(cli: Cli, tmp_path: Path) -> None:
    with simulated_process("--output-mean", "ceiling", "--step-seconds", "0.05") as url, occupied(url):
        ran = cli("profile", "verify", url, "--profile", written(tmp_path, MEASURED))
    assert ran.exit_code == ExitCode.TEMPORARY
    assert f"{url} is not idle: requests that run there: 1" in ran.stderr
