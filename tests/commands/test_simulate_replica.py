"""`llmshed simulate --replica`: a model and a GPU by name or by file, with options that win over it."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Protocol

import pytest

SHIPPED = (
    "llama-2-7b-a10g",
    "llama-3-8b-a10g",
    "llama-3-8b-h100",
    "llama-3.1-70b-4xh100",
    "llama-3.1-8b-h100",
    "llama-3.2-1b-rtx3090",
)


class Cli(Protocol):
    def __call__(self, *arguments: str | Path, stdin: str = "") -> Any: ...


def told(*options: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the program on a free port, and return what it printed and what its `/info` says."""
    command = [sys.executable, "-m", "llmshed.commands", "simulate", "--port", "0", "--json", *map(str, options)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LLMSHED_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            printed = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
            with urllib.request.urlopen(f"{printed['url']}/info") as response:  # noqa: S310 - loopback
                info = json.load(response)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
    return printed, info


def test_a_shipped_replica_is_run_by_its_name() -> None:
    printed, info = told("--replica", "llama-3-8b-a10g")
    assert (printed["kv_tokens"], printed["max_total_tokens"], printed["version"]) == (31_825, 8192, "3.3.5")
    assert (info["model_id"], info["max_concurrent_requests"]) == ("meta-llama/Meta-Llama-3-8B-Instruct", 128)


def test_options_win_over_the_file(tmp_path: Path, repository: Path) -> None:
    shipped = (repository / "profiles" / "replicas" / "llama-3-8b-a10g.toml").read_text("utf-8")
    (tmp_path / "mine.toml").write_text(f"\ufeff{shipped}", "utf-8")
    options = ("--model-id", "me/mine", "--kv-tokens", "9000", "--max-total-tokens", "4096", "--max-best-of", "5")
    printed, info = told("--replica", tmp_path / "mine.toml", *options)
    assert (printed["kv_tokens"], printed["max_total_tokens"]) == (9000, 4096)
    assert (info["model_id"], info["max_input_tokens"], info["max_best_of"]) == ("me/mine", 4095, 5)


def test_a_replica_of_vllm_is_refused(cli: Cli) -> None:
    ran = cli("simulate", "--replica", "llama-3.2-1b-rtx3090")
    assert ran.exit_code == 64
    complaint = " ".join(ran.stderr.split())
    assert '--replica llama-3.2-1b-rtx3090: its engine.mode is "vllm"' in complaint
    assert '"tgi" is accepted here' in complaint


def test_an_unknown_name_is_answered_with_those_that_there_are(cli: Cli) -> None:
    ran = cli("simulate", "--replica", "llama-3-8b")
    assert ran.exit_code == 66
    assert f"replicas that ship with llmshed are {', '.join(SHIPPED)}" in " ".join(ran.stderr.split())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"x = ", "not TOML"),
        (b"", "model: is missing"),
        (b"# " + b"x" * 1_100_000, "is longer than 1048576 bytes"),
    ],
)
def test_a_file_that_is_no_replica_is_refused_with_its_name(
    cli: Cli, tmp_path: Path, text: bytes, complaint: str
) -> None:
    (tmp_path / "r.toml").write_bytes(text)
    ran = cli("simulate", "--replica", tmp_path / "r.toml")
    assert ran.exit_code in {65, 78}
    assert "r.toml" in ran.stderr
    assert complaint in " ".join(ran.stderr.split())


def test_an_option_that_contradicts_the_file_is_told_with_both(cli: Cli) -> None:
    ran = cli("simulate", "--replica", "llama-3-8b-a10g", "--kv-tokens", "100", "--max-total-tokens", "8000")
    assert ran.exit_code == 64
    assert "max_total_tokens 8000 does not fit kv_tokens 100" in " ".join(ran.stderr.split())


def test_what_a_file_leaves_out_follows_from_the_options() -> None:
    # TGI 2.0 has no prefix cache, and the longest sequence is what a cache of 2,000 tokens holds beside its own block.
    printed, info = told("--replica", "llama-3-8b-a10g", "--tgi-version", "2.0.0", "--kv-tokens", "2000")
    assert (printed["version"], printed["max_total_tokens"]) == ("2.0.0", 1999)
    assert info["max_input_length"] == 1998


def test_a_file_is_read_from_standard_input(cli: Cli) -> None:
    ran = cli("simulate", "--replica", "-", stdin='schema = "llmshed.replica/1"\n')
    assert ran.exit_code == 78
    assert "standard input:1: gpu: is missing" in ran.stderr


@pytest.mark.parametrize(
    ("named", "code", "complaint"), [("", 66, "'' names no file"), ("/dev/zero", 78, "is longer than 1048576 bytes")]
)
def test_what_names_no_file_or_never_ends_is_told(cli: Cli, named: str, code: int, complaint: str) -> None:
    ran = cli("simulate", "--replica", named)
    assert (ran.exit_code, complaint in " ".join(ran.stderr.split())) == (code, True)


@pytest.mark.parametrize("file", ["", "-"])
def test_a_record_needs_a_file(cli: Cli, file: str) -> None:
    ran = cli("simulate", "--record", file)
    assert ran.exit_code == 64
    assert f"--record '{file}': the path of a file is needed" in " ".join(ran.stderr.split())
