"""`llmshed simulate` as it is typed."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from llmshed.simulation.replaying import read_schedule, replay
from llmshed.simulation.results import Ended
from llmshed.simulation.schedule import Close


class Cli(Protocol):
    def __call__(self, *arguments: str | Path) -> Any: ...


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--port", "70000"], "--port"),
        (["--tgi-version", "9.9.9"], "1.4.0 to 3.x"),
        (["--tgi-version", "latest"], "MAJOR.MINOR.PATCH"),
        (["--max-input-tokens", "9000"], "max_input_tokens 9000 must be below max_total_tokens 8192"),
        (["--max-total-tokens", "1"], "--max-total-tokens"),
        (["--kv-tokens", "100"], "max_total_tokens 8192 does not fit kv_tokens 100"),
        (["--tgi-version", "2.4.0", "--max-batch-prefill-tokens", "100"], "must be at least max_input_tokens 8191"),
        (["--step-seconds", "0"], "--step-seconds"),
        (["--step-seconds", "nan"], "--step-seconds"),
        (["--prefill-tokens-per-second", "0"], "--prefill-tokens-per-second"),
        (["--output-mean", "long"], "a number from 1 to 1000000 or ceiling is needed"),
        (["--output-mean", "0"], "accepted are 1 to 1000000"),
        (["--fault", "die=1"], "with one of: die_after_events"),
        (["--fault", "die_after_events=-1"], "die_after_events"),
        (["--fault", "overloaded=maybe"], "overloaded is true or false"),
        (["--max-concurrent-requests", "0"], "--max-concurrent-requests"),
        (["--host", ""], "--host '': an address or a name is needed"),
        (["--model-id", ""], "model_id is empty"),
    ],
)
def test_a_wrong_value_is_told_with_what_is_accepted(cli: Cli, options: list[str], complaint: str) -> None:
    ran = cli("simulate", *options)
    assert ran.exit_code == 64
    assert complaint in " ".join(ran.stderr.split())
    assert ran.stdout == ""


def test_files_that_are_not_there_end_with_their_code(cli: Cli, tmp_path: Path) -> None:
    assert cli("simulate", "--tokenizer", "/nope").exit_code == 66
    assert cli("simulate", "--api-key-file", "/nope").exit_code == 66
    (tmp_path / "key").write_text("\n")
    assert cli("simulate", "--api-key-file", tmp_path / "key").exit_code == 64


@contextmanager
def running(*options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Run the program on a free port and give its process and the line that it printed."""
    command = [sys.executable, "-m", "llmshed.commands", "simulate", "--port", "0", *options]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LLMSHED_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


def fetched(url: str) -> Any:
    with urllib.request.urlopen(url) as response:  # noqa: S310 - loopback, from the program's own line
        return json.load(response)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_its_url_serves_and_ends_on_a_signal(number: signal.Signals) -> None:
    with running("--tgi-version", "2.4.0", "--model-id", "me/mine", "--kv-tokens", "9000") as (process, line):
        assert line.startswith("simulated TGI 2.4.0 at http://127.0.0.1:")
        told = fetched(f"{line.split()[-1]}/info")
        process.send_signal(number)
        assert process.wait(30) == 0
    assert (told["version"], told["model_id"], told["max_total_tokens"]) == ("2.4.0", "me/mine", 8192)


def test_it_prints_one_json_object_when_asked() -> None:
    with running("--json", "--fault", "overloaded", "--fault", "times=3") as (process, line):
        assert process.stdout is not None
        told = json.loads(line + "".join(iter(process.stdout.readline, "}\n")) + "}")
        plan = fetched(f"{told['url']}/_simulate/faults")
    assert (told["schema"], told["version"], told["kv_tokens"]) == ("llmshed.simulate/1", "3.3.5", 49_152)
    assert (plan["overloaded"], plan["times"]) == (True, 3)


def test_a_port_in_use_ends_with_unavailable(cli: Cli) -> None:
    with running() as (_, line):
        port = line.rstrip().rpartition(":")[2]
        ran = cli("simulate", "--port", port)
    assert ran.exit_code == 69
    assert f"cannot listen on 127.0.0.1:{port}" in ran.stderr


def posted(url: str, body: dict[str, Any]) -> Any:
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - loopback, as above
    with urllib.request.urlopen(request) as response:  # noqa: S310 - loopback, as above
        return json.load(response)


def test_a_recorded_run_can_be_gone_through_again(tmp_path: Path) -> None:
    path = tmp_path / "schedule.jsonl"
    with running("--record", str(path), "--step-seconds", "0.001", "--kv-tokens", "9000") as (process, line):
        posted(f"{line.split()[-1]}/generate", {"inputs": "Tell me", "parameters": {"max_new_tokens": 5}})
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    with path.open("rb") as lines:
        schedule = read_schedule(lines)
    assert schedule.parameters.kv_tokens == 9000
    assert isinstance(schedule.calls[-1].call, Close)
    ended = [result for result in schedule.results if isinstance(result, Ended)]
    assert [result for result in replay(schedule) if isinstance(result, Ended)] == ended
    assert len(ended) == 1


def test_a_schedule_that_cannot_be_written_ends_with_its_code(cli: Cli, tmp_path: Path) -> None:
    ran = cli("simulate", "--record", tmp_path)
    assert (ran.exit_code, ran.stdout) == (74, "")
    assert f"cannot write {tmp_path}: Is a directory" in ran.stderr
