"""`llmshed calibrate` in real time: a simulated replica whose truth is known, and real engines twice each."""

from pathlib import Path
from typing import Any

import pytest
from calibration_realtime import calibrated, plan_of, replica
from calibration_truth import truth_of

from conftest import Cli
from fakes.llama import RealEngine, llama
from fakes.vllm import vllm
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


KV_BLOCKS, BLOCK_TOKENS = 50, 32


def test_llama_cpp_gives_the_same_answer_twice(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with llama(tmp_path / "model", slots=SLOTS, context_tokens=SLOT_TOKENS, width=384, layers=4) as server:
        agree(twice(cli, server, tmp_path, kv_tokens=SLOTS * SLOT_TOKENS))


def test_vllm_gives_the_same_answer_twice(cli: Cli, tmp_path: Path) -> None:
    """Its KV cache holds five of the requests, and its scheduler takes four."""
    (tmp_path / "model").mkdir()
    with vllm(tmp_path / "model", sequences=SLOTS, context_tokens=SLOT_TOKENS, kv_blocks=KV_BLOCKS) as server:
        agree(twice(cli, server, tmp_path, kv_tokens=KV_BLOCKS * BLOCK_TOKENS))


def agree(runs: list[dict[str, Any]]) -> None:
    for one, other in (runs, runs[::-1]):
        assert one["gross_ceiling_low_tokens"] <= other["gross_ceiling_high_tokens"], "the intervals lie apart"


def twice(cli: Cli, server: RealEngine, folder: Path, kv_tokens: int) -> list[dict[str, Any]]:
    """Calibrate two times, and return the budgets, which the engine's own figure stands beside."""
    found = []
    for run in ("one", "other"):
        options = ("--mix", REQUESTS, "--tokenizer", server.folder, "--max-duration", "330")
        ran = cli("calibrate", server.url, "--profile-out", folder / f"{run}.toml", *options, "--quiet", "--json")
        assert ran.exit_code == 0, ran.stderr
        told = ran.json()
        assert told["kv_tokens"] == kv_tokens
        found.append(told["profile"]["budget"])
        print(f"{server.url}: {found[-1]}")  # noqa: T201 - read with -s
    return found
