"""What holds for every verb: versions, usage errors, exit codes."""

from typing import Any

import pytest


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
