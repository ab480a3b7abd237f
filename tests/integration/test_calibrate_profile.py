"""A run of `llmshed calibrate` that came to its end: the profile, the page, and what a full disk leaves of them.

The run itself took place on a virtual clock; its journal is gone on with, so that only its files are left to write.
"""

import errno
import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import NoReturn

import pytest
from virtual_replica import VirtualReplica
from virtual_run import VirtualRun

from conftest import Cli
from fakes.simulated_process import simulated_process
from llmshed.calibration import Calibration, Objective, Phase, Plan, Shape
from llmshed.calibration.events import Action, Event, StopReason
from llmshed.errors import ExitCode
from llmshed.loadtest.journal import Journal
from llmshed.profile import parse_profile
from llmshed.profile.sections import Lanes
from llmshed.simulation.parameters import ReplicaParameters

pytestmark = pytest.mark.slow
SEED = 7
PLAN = Plan(
    mix=(Shape(256, 64, "interactive"), Shape(512, 128, "interactive")),
    objectives={"interactive": Objective(2.0, 0.1), "bulk": Objective(120.0, 0.1)},
    max_duration_seconds=900.0,
    max_input_tokens=8191,
)
TOLD = {"engine": "tgi", "model_id": "llmshed/simulated", "engine_version": "3.3.5"}


class Written(Calibration):
    """A calibration whose events are written to a journal."""

    def __init__(self, journal: Journal, plan: Plan) -> None:
        super().__init__(plan, Random(f"{SEED}/calibration"))  # noqa: S311 - the order of sizes is no secret
        self._journal = journal

    def handle(self, event: Event, now: float) -> list[Action]:
        self._journal.write(event, now)
        return super().handle(event, now)


def run_of(path: Path, plan: Plan) -> tuple[bytes, Calibration]:
    """Return the journal of a run, and where its machine stood at its end."""
    header = {**TOLD, "seed": SEED, "mix": "256/64,512/128", "plan": asdict(plan), "lanes": Lanes().model_dump()}
    with Journal(path, header) as journal:
        machine = Written(journal, plan)
        VirtualRun(machine, VirtualReplica(ReplicaParameters(kv_tokens=16_000), lambda _: 50)).run()
    return path.read_bytes(), machine


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Calibration]:
    """A whole run."""
    return run_of(tmp_path_factory.mktemp("calibration") / "journal", PLAN)


@pytest.fixture(scope="module")
def replica() -> Iterator[str]:
    with simulated_process() as url:
        yield url


def test_the_profile_holds_what_the_run_found(
    cli: Cli, replica: str, tmp_path: Path, ended: tuple[bytes, Calibration]
) -> None:
    content, machine = ended
    journal = tmp_path / "llama.journal.jsonl"
    journal.write_bytes(content)
    ran = cli("calibrate", replica, "--resume", journal, "--declare", "gpu=A10G", "--version", "3", "--json")
    assert ran.exit_code == ExitCode.OK, ran.stderr
    text = (tmp_path / "llama.toml").read_text()
    profile = parse_profile(text, "llama.toml")
    result = machine.result()
    kv, cap = result.sweep(Phase.KV), result.sweep(Phase.CAP)
    assert kv is not None
    assert kv.knee is not None
    assert cap is not None
    assert cap.knee is not None
    assert profile.label == "llama@3"
    assert profile.budget.basis == "calibrated"
    assert 0 < profile.budget.gross_ceiling_tokens <= kv.knee.low
    assert profile.budget.hard_cap_sequences <= cap.knee.low
    assert profile.budget.preemptions_per_minute is not None
    found = profile.fingerprint
    assert (found.engine, found.engine_version, found.model_id, found.gpu, found.workload) == (
        "tgi",
        "3.3.5",
        "llmshed/simulated",
        "A10G",
        "256/64,512/128",
    )
    assert found.limits.max_total_tokens == 8192
    assert found.tokenizer_sha256 is not None
    assert found.behaviour.decode_step_seconds is not None
    told = ran.json()
    assert (told["ended"], told["seed"]) == (StopReason.DONE.value, SEED)
    assert told["profile"]["budget"]["gross_ceiling_tokens"] == profile.budget.gross_ceiling_tokens
    page = (tmp_path / "llama.html").read_text()
    assert f"The replica carries {profile.budget.gross_ceiling_tokens:,} reserved tokens" in page
    assert "Gross ceiling" in page
    assert cli("profile", "check", tmp_path / "llama.toml").exit_code == ExitCode.OK


def test_when_its_time_is_over_before_anything_was_found_there_is_no_profile(
    cli: Cli, replica: str, tmp_path: Path
) -> None:
    journal = tmp_path / "p.journal.jsonl"
    content, machine = run_of(journal, replace(PLAN, max_duration_seconds=30.0))
    ran = cli("calibrate", replica, "--resume", journal)
    assert machine.result().stop is StopReason.TIME
    assert ran.exit_code == ExitCode.NO_PROPOSAL
    assert "llmshed: the time given is over before any level was seen to hold; no profile was written\n" in ran.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"p.journal.jsonl", "p.html"}
    assert journal.read_bytes() == content


def test_a_disk_that_fills_up_leaves_the_profile_that_was_there(
    cli: Cli, replica: str, tmp_path: Path, ended: tuple[bytes, Calibration], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "llama.journal.jsonl"
    journal.write_bytes(ended[0])
    (tmp_path / "llama.toml").write_text("# the old one\n")

    def full(_: int) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    ran = cli("calibrate", replica, "--resume", journal)
    assert ran.exit_code == ExitCode.IO
    assert "llama.toml: cannot be written: No space left on device" in ran.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"llama.toml", "llama.journal.jsonl"}
    assert (tmp_path / "llama.toml").read_text() == "# the old one\n"


def test_another_replica_does_not_go_on_with_it(cli: Cli, tmp_path: Path, ended: tuple[bytes, Calibration]) -> None:
    journal = tmp_path / "llama.journal.jsonl"
    journal.write_bytes(ended[0])
    with simulated_process("--model-id", "another/model") as url:
        ran = cli("calibrate", url, "--resume", journal)
    assert ran.exit_code == ExitCode.UNAVAILABLE
    assert "its model_id is another/model, and was llmshed/simulated" in ran.stderr
