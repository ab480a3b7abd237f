"""What every verb does when its standard streams are closed, full, or read by nobody."""

import subprocess
import sys
from pathlib import Path

import pytest

LLMSHED = Path(sys.executable).with_name("llmshed")
VERBS = [
    pytest.param("--help", id="help"),
    pytest.param("--version", id="version"),
    pytest.param("config schema", id="config"),
    pytest.param("tokenize hi", id="tokenize"),
    pytest.param("classify hi", id="classify"),
    pytest.param("classify hi --json", id="json"),
    pytest.param("man llmshed", id="man"),
]


def run(words: str, redirection: str) -> subprocess.CompletedProcess[str]:
    """Run a verb under a shell's redirection; a pipeline ends with the verb's own code."""
    return subprocess.run(
        ["/bin/bash", "-c", f"set -o pipefail; {LLMSHED} {words} {redirection}"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("words", VERBS)
def test_a_full_device_is_an_error_of_io_told_in_one_line(words: str) -> None:
    ran = run(words, ">/dev/full")

    assert ran.returncode == 74
    assert "Traceback" not in ran.stderr
    assert "No space left on device" in ran.stderr.splitlines()[-1]


@pytest.mark.parametrize("words", VERBS)
def test_a_reader_that_left_is_no_error(words: str) -> None:
    ran = run(words, "> >(:)")

    assert ran.returncode == 0
    assert "Traceback" not in ran.stderr


CLOSED = [
    ">&-",
    "<&- >&- 2>&-",
    # Closed together with the others above; alone only in the long runs, since each verb takes half a second to start.
    pytest.param("<&-", marks=pytest.mark.soak),
    pytest.param("2>&-", marks=pytest.mark.soak),
]


@pytest.mark.parametrize("words", VERBS)
@pytest.mark.parametrize("closed", CLOSED)
def test_a_closed_stream_stops_no_verb(words: str, closed: str) -> None:
    ran = run(words, closed)

    assert ran.returncode == 0
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("words", ["tokenize --file -", "tokenize --chat -", "classify --request -"])
def test_closed_standard_input_is_missing_input_where_it_is_to_be_read(words: str) -> None:
    ran = run(words, "<&-")

    assert ran.returncode == 66
    assert "standard input: it is closed" in ran.stderr
