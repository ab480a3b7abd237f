"""`llmshed calibrate` against a replica: what it leaves behind however it ends, and that it goes on."""

import csv
import json
import os
import resource
import signal
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from conftest import Cli
from fakes.programs import LLMSHED
from fakes.simulated_process import occupied, simulated_process
from fakes.whatif_traces import azure
from llmshed.errors import ExitCode

pytestmark = pytest.mark.slow
FAST = ("--output-mean", "ceiling", "--step-seconds", "0.002", "--prefill-tokens-per-second", "200000")
MIX = ("--mix", "64/64*3,256/32", "--quiet")


@pytest.fixture(scope="module")
def replica() -> Iterator[str]:
    with simulated_process(*FAST) as url:
        yield url


def asked(url: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"content-type": "application/json"})  # noqa: S310 - made here
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - as above
        return json.load(answer)


@contextmanager
def during(
    profile: Path, act: Callable[[], object], *, samples_first: int = 4, repeated: bool = False
) -> Iterator[None]:
    """Do something beside the block, once its run has written so many samples; if wished every 5 s until it ends."""
    samples = profile.with_suffix(".samples.csv")
    begun = samples.stat().st_mtime_ns if samples.exists() else 0
    given_up = Event()

    def wait() -> None:
        while not given_up.wait(0.05):
            if (
                samples.exists()
                and samples.stat().st_mtime_ns > begun
                and samples.read_text().count("\n") > samples_first
            ):
                act()
                while repeated and not given_up.wait(5.0):
                    act()
                return

    thread = Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        given_up.set()
        thread.join()


def end_this_process() -> None:
    """Send what a supervisor sends; the run has a handler of its own for it."""
    os.kill(os.getpid(), signal.SIGTERM)


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


WITHOUT_PROFILE = {"p.samples.csv", "p.journal.jsonl", "p.html"}


def test_a_dry_run_tells_the_plan_and_sends_nothing(cli: Cli, replica: str, tmp_path: Path) -> None:
    before = asked(replica, "/_simulate/state")
    ran = cli("calibrate", replica, "--profile-out", tmp_path / "p.toml", "--dry-run", "--json", *MIX)
    assert ran.exit_code == ExitCode.OK
    told = ran.json()
    assert (told["schema"], told["engine"], told["model_id"]) == ("llmshed.calibrate/1", "tgi", "llmshed/simulated")
    assert [(shape["input_tokens"], shape["ceiling_tokens"]) for shape in told["plan"]["mix"]] == [
        (64, 64),
        (64, 64),
        (64, 64),
        (256, 32),
    ]
    assert asked(replica, "/_simulate/state") == before
    assert not left(tmp_path)


def test_sizes_come_from_a_trace_and_objectives_from_a_configuration(cli: Cli, replica: str, tmp_path: Path) -> None:
    trace, config = tmp_path / "day.csv", tmp_path / "llmshed.toml"
    trace.write_text(azure(requests=40))
    config.write_text(
        "[lanes.interactive]\nttft_objective_seconds = 4.0\nqueue_share_ratio = 0.25\ntpot_objective_seconds = 0.2\n"
        '[[pools]]\nreplicas = [{ name = "a", url = "simulated:" }]\n'
    )
    options = ("--workload", trace, "--ceiling", "flat1024", "--config", config, "--dry-run", "--json")
    ran = cli("calibrate", replica, "--profile-out", tmp_path / "p.toml", *options)
    assert ran.exit_code == ExitCode.OK, ran.stderr
    told = ran.json()
    assert told["mix"] == "day.csv, ceilings flat1024"
    assert Counter((one["input_tokens"], one["ceiling_tokens"], one["lane"]) for one in told["plan"]["mix"]) == {
        (300, 1024, "interactive"): 20,
        (600, 1024, "interactive"): 20,
    }
    assert told["plan"]["engine_share_ratio"] == 0.75
    assert told["plan"]["objectives"]["interactive"] == {"ttft_seconds": 4.0, "tpot_seconds": 0.2}
    assert left(tmp_path) == {"day.csv", "llmshed.toml"}


def test_ctrl_c_keeps_what_was_measured_with_a_key_and_a_resumed_run_knows_its_plan(cli: Cli, tmp_path: Path) -> None:
    key, profile, journal = (tmp_path / name for name in ("key", "p.toml", "p.journal.jsonl"))
    key.write_text("secret-of-the-replica\n")
    with simulated_process(*FAST, "--api-key-file", str(key)) as url:
        files: tuple[str | Path, ...] = ("--profile-out", profile, "--key-file", key)
        command = [LLMSHED, "calibrate", url, *files, "--mix", "64/64*3,256/32"]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
            during(profile, lambda: process.send_signal(signal.SIGINT), samples_first=60),
        ):
            _, told = process.communicate(timeout=60)
        ran = cli("calibrate", url, "--resume", journal, "--key-file", key, "--dry-run", "--json")
    assert process.returncode == ExitCode.INTERRUPTED
    assert "llmshed: gross ceiling" in told
    assert f"llmshed: interrupted: what was measured is kept; go on with --resume {journal}\n" in told
    rows = list(csv.DictReader(profile.with_suffix(".samples.csv").read_text().splitlines()))
    assert "finished" in {row["outcome"] for row in rows} <= {"finished", "cancelled"}
    assert left(tmp_path) == WITHOUT_PROFILE | {"key"}
    assert ran.exit_code == ExitCode.OK, ran.stderr
    assert (ran.json()["mix"], len(ran.json()["plan"]["mix"])) == ("64/64*3,256/32", 4)


def test_a_mix_beyond_the_replica_is_told(cli: Cli, replica: str, tmp_path: Path) -> None:
    ran = cli("calibrate", replica, "--profile-out", tmp_path / "p.toml", "--mix", "64/64,8000/1000")
    assert ran.exit_code == ExitCode.CONFIG
    assert "the mix holds a request of 8000 + 1000 tokens, and the replica takes 8192 together" in ran.stderr


def test_a_full_disk_ends_it_without_a_profile(cli: Cli, replica: str, tmp_path: Path) -> None:
    """A bound of the file size stands for the disk: a symbolic link to /dev/full would be refused before."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, usual[1]))
    try:
        ran = cli("calibrate", replica, "--profile-out", tmp_path / "p.toml", *MIX)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert ran.exit_code == ExitCode.IO
    assert "p.samples.csv: cannot be written: File too large" in ran.stderr
    assert "p.toml" not in left(tmp_path)


@pytest.mark.soak  # refusals are a second apart
def test_an_engine_that_refuses_from_the_start_is_told(cli: Cli, tmp_path: Path) -> None:
    with simulated_process(*FAST, "--fault", "overloaded") as url:
        ran = cli("calibrate", url, "--profile-out", tmp_path / "p.toml", *MIX)
    assert ran.exit_code == ExitCode.UNAVAILABLE
    assert "the engine refused each of the first 5 requests: Model is overloaded" in ran.stderr
    assert left(tmp_path) == WITHOUT_PROFILE


def test_a_replica_that_others_use_is_left_alone(cli: Cli, tmp_path: Path) -> None:
    with simulated_process("--output-mean", "ceiling", "--step-seconds", "0.05") as url, occupied(url):
        ran = cli("calibrate", url, "--profile-out", tmp_path / "p.toml", *MIX)
    assert ran.exit_code == ExitCode.TEMPORARY
    assert f"{url} is not idle: requests that run there: 1; a measurement needs it alone (--force)" in ran.stderr
    assert not left(tmp_path)


def test_prompts_of_others_end_it(cli: Cli, replica: str, tmp_path: Path) -> None:
    text = "hello world " * 1500
    other = {"inputs": text, "parameters": {"max_new_tokens": 2}}
    with during(tmp_path / "p.toml", lambda: asked(replica, "/generate", other)):
        ran = cli("calibrate", replica, "--profile-out", tmp_path / "p.toml", *MIX)
    assert ran.exit_code == ExitCode.TEMPORARY
    assert "somebody else uses it" in ran.stderr
    assert left(tmp_path) == WITHOUT_PROFILE


@pytest.mark.soak  # eight failures in a row, a second apart
def test_a_replica_that_dies_in_the_middle_leaves_no_profile(cli: Cli, tmp_path: Path) -> None:
    with simulated_process(*FAST) as url:
        gone = {"refuse_seconds": 600, "die_after_events": 0}
        with during(tmp_path / "p.toml", lambda: asked(url, "/_simulate/faults", gone)):
            ran = cli("calibrate", url, "--profile-out", tmp_path / "p.toml", *MIX)
    assert ran.exit_code == ExitCode.UNAVAILABLE
    assert "no profile was written" in ran.stderr
    assert left(tmp_path) == WITHOUT_PROFILE


def test_an_interrupted_run_is_kept_and_goes_on(cli: Cli, replica: str, tmp_path: Path) -> None:
    profile, journal, samples = (tmp_path / f"p{ending}" for ending in (".toml", ".journal.jsonl", ".samples.csv"))
    with during(profile, end_this_process, repeated=True):
        ran = cli("calibrate", replica, "--profile-out", profile, *MIX)
    assert ran.exit_code == ExitCode.INTERRUPTED
    assert f"go on with --resume {journal}" in ran.stderr
    assert left(tmp_path) == WITHOUT_PROFILE
    header, columns = journal.read_bytes().splitlines()[0], samples.read_text().splitlines()[0]
    with during(profile, end_this_process, repeated=True):
        ran = cli("calibrate", replica, "--resume", journal, "--quiet")
    assert ran.exit_code == ExitCode.INTERRUPTED
    assert samples.read_text().splitlines()[0] == columns
    assert journal.read_bytes().splitlines()[0] == header
    assert left(tmp_path) == WITHOUT_PROFILE
