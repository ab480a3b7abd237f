"""What holds for every verb: versions, usage errors, exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LLMSHED = Path(sys.executable).with_name("llmshed")


def test_the_version_goes_to_stdout_and_the_exit_code_is_0(cli: Any) -> None:
    ran = cli("--version")

    assert ran.exit_code == 0
    assert ran.stdout.startswith("llmshed ")
    assert ran.stderr == ""


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_answers_to_both_of_its_names(cli: Any, flag: str) -> None:
    ran = cli(flag)

    assert ran.exit_code == 0
    assert "serve" in ran.stdout


@pytest.mark.parametrize("arguments", [["--no-such-option"], ["no-such-verb"], ["config", "no-such-verb"]])
def test_a_usage_error_ends_with_64_and_says_so_on_stderr_only(cli: Any, arguments: list[str]) -> None:
    ran = cli(*arguments)

    assert ran.exit_code == 64
    assert ran.stdout == ""
    assert "no-such" in ran.stderr


def test_a_misspelt_verb_is_answered_with_the_nearest_one(cli: Any) -> None:
    assert "classify" in cli("clasify").stderr


@pytest.mark.parametrize("group", [[], ["config"]])
def test_no_sentence_of_the_list_of_verbs_is_cut(cli: Any, group: list[str]) -> None:
    listed = cli(*group, "-h").stdout.partition("Commands:\n")[2].splitlines()

    assert len(listed) >= 4
    assert [line for line in listed if not line.endswith(".") or line.endswith("...")] == []


def test_off_a_terminal_a_row_of_a_table_is_one_line_without_blanks_at_its_end(cli: Any) -> None:
    lines = cli("classify", "--input-tokens", "5", env={"COLUMNS": "30"}).stdout.splitlines()

    assert [line.split("  ")[0] for line in lines] == [
        "verdict", "status", "lane", "input tokens", "output ceiling", "reservation", "fits", "why", "profile",
        "prefill window",
    ]  # fmt: skip
    assert [line for line in lines if line != line.rstrip()] == []


def run_with_encoding(encoding: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environ = os.environ | {"PYTHONIOENCODING": encoding}
    return subprocess.run([LLMSHED, *arguments], env=environ, capture_output=True, check=False)


def test_what_a_terminal_cannot_show_is_escaped() -> None:
    ran = run_with_encoding("latin-1", "tokenize", "\u65e5 \xe9", "--pieces")

    assert (ran.returncode, b"Traceback" in ran.stderr) == (0, False)
    assert b"\\u65e5" in ran.stdout or b"\\ufffd" in ran.stdout


def test_json_is_utf_8_whatever_the_locale_says() -> None:
    ran = run_with_encoding("latin-1", "tokenize", "\u65e5 \xe9", "--pieces", "--json")

    assert "".join(json.loads(ran.stdout.decode("utf-8"))["pieces"]).endswith("\xe9")
