"""`llmshed calibrate` in real time: against a simulated replica whose truth is known, and twice against llama.cpp."""

from pathlib import Path
from typing import Any

import pytest
from calibration_realtime import calibrated, plan_of, replica
from calibration_truth import truth_of

from conftest import Cli
from fakes.llama import llama
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]
KV_TOKENS, STEP_SECONDS, TOKENS_PER_SECOND = 8_192, 0.02, 12_000
MIX = {(64, 64): 3, (256, 32): 1}
SLOTS, SLOT_TOKENS = 4, 512
REQUESTS = "64/256,128/192"
"""All reserve as much, and an answer takes seconds: the knee is where one more waits for a slot, however fast the
machine is meanwhile."""


def test_a_small_replica_is_measured_near_its_truth(tmp_path: Path) -> None:
    """A tenth above and two fifths below: a machine that has other work makes steps longer and never shorter."""
    parameters = ReplicaParameters(
        kv_tokens=KV_TOKENS,
        step_times=StepTimes(step_seconds=STEP_SECONDS, seconds_per_prefill_token=1 / TOKENS_PER_SECOND),
    )
    truth, _ = truth_of(plan_of(MIX, parameters.max_input_tokens), parameters)
    times = ("--step-seconds", str(STEP_SECONDS), "--prefill-tokens-per-second", str(TOKENS_PER_SECOND))
    with replica("--kv-tokens", str(KV_TOKENS), *times) as url:
        told = calibrated(url, tmp_path, MIX, ("--max-duration", "180", "--quiet"))
    found = told["profile"]["budget"]["gross_ceiling_tokens"]
    print(f"found {found:,}, truth {truth:,.0f}: {found / truth:.3f} of it")  # noqa: T201 - read with -s
    assert 0.6 * truth <= found <= 1.1 * truth


def test_a_real_engine_gives_the_same_answer_twice(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with llama(tmp_path / "model", slots=SLOTS, context_tokens=SLOT_TOKENS, width=384, layers=4) as server:
        runs = [budget(cli, server.url, server.folder, tmp_path / f"{run}.toml") for run in ("one", "other")]
    for one, other in (runs, runs[::-1]):
        assert one["gross_ceiling_low_tokens"] <= other["gross_ceiling_high_tokens"], "the intervals lie apart"


def budget(cli: Cli, url: str, tokenizer: Path, profile: Path) -> dict[str, Any]:
    """Calibrate once and return the budget, which the engine's own figure stands beside."""
    options = ("--mix", REQUESTS, "--tokenizer", tokenizer, "--max-duration", "330")
    ran = cli("calibrate", url, "--profile-out", profile, *options, "--quiet", "--json")
    assert ran.exit_code == 0, ran.stderr
    told = ran.json()
    assert told["kv_tokens"] == SLOTS * SLOT_TOKENS
    found: dict[str, Any] = told["profile"]["budget"]
    print(f"{url}: {found}")  # noqa: T201 - read with -s
    return found
