"""`llmshed calibrate` before it sends anything: what it refuses, and what it says of a plan."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from conftest import Cli
from llmshed.errors import ExitCode

NOWHERE = "http://127.0.0.1:9"


class Shop(BaseHTTPRequestHandler):
    """A server that is no engine: one page for every path."""

    def do_GET(self) -> None:
        body = b'{"shop":"open"}'
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Shop) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        serving.join()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "--profile-out: the name of the profile to write is needed"),
        (("--mix", "512"), "--mix '512': must be INPUT/CEILING or INPUT/CEILING*TIMES"),
        (("--mix", "0/4"), "--mix '0/4': no lane takes a request of that size"),
        (("--mix", "512/128*0"), "--mix '512/128*0': must be"),
        (("--mix", "1/1", "--workload", "x"), "--mix and --workload: one of them says what is sent"),
        (("--name", "Llama 8B"), "--name 'Llama 8B': must be 1 to 63 of a-z, 0-9"),
        (("--version", "a b"), "--version 'a b': must be text of 1 to 64 letters"),
        (("--declare", "gpu"), "--declare 'gpu': must be NAME=VALUE"),
        (("--declare", "colour=red"), "where NAME is one of model_revision"),
        (("--declare", "gpu_count=many"), "--declare gpu_count:"),
        (("--declare", "gpu_count=-1"), "--declare gpu_count: Input should be greater than or equal to 1"),
        (("--declare", "gpu_count=\u00b2"), "--declare gpu_count: Input should be a valid integer"),
        (("--max-duration", "1"), "10"),
        (("--resume", "x.journal.jsonl", "--mix", "1/1"), "--resume: the journal says what is sent"),
        (("--resume", "x.journal.jsonl", "--max-duration", "60"), "--resume: the journal says what is sent"),
    ],
)
def test_a_mistake_is_told_with_what_is_accepted(cli: Cli, tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    profile = () if not options or "--resume" in options else ("--profile-out", tmp_path / "p.toml")
    ran = cli("calibrate", NOWHERE, *profile, *options)
    assert ran.exit_code == ExitCode.USAGE
    assert told in ran.stderr


@pytest.mark.parametrize("address", ["", "ftp://x", "http://127.0.0.1:99999", "http://u:p@127.0.0.1:1", "http://x/?q"])
def test_an_address_that_is_none_is_told_before_anybody_is_asked(cli: Cli, tmp_path: Path, address: str) -> None:
    ran = cli("calibrate", address, "--profile-out", tmp_path / "p.toml")
    assert (ran.exit_code, "REPLICA" in ran.stderr) == (ExitCode.USAGE, True)


def test_a_file_that_cannot_be_written_is_told_first(cli: Cli, tmp_path: Path) -> None:
    absent = tmp_path / "absent" / "p.toml"
    ran = cli("calibrate", NOWHERE, "--profile-out", absent)
    assert ran.exit_code == ExitCode.IO
    assert f"--profile-out {absent}: there is no directory" in ran.stderr
    assert cli("calibrate", NOWHERE, "--profile-out", tmp_path).exit_code == ExitCode.IO


def test_nobody_at_an_address_is_told(cli: Cli, tmp_path: Path) -> None:
    ran = cli("calibrate", NOWHERE, "--profile-out", tmp_path / "p.toml")
    assert ran.exit_code == ExitCode.UNAVAILABLE
    assert f"nobody answers at {NOWHERE}/info" in ran.stderr
    assert not list(tmp_path.iterdir())


def test_a_server_that_is_no_engine_is_told_by_what_it_said(cli: Cli, tmp_path: Path, shop: str) -> None:
    ran = cli("calibrate", shop, "--profile-out", tmp_path / "p.toml")
    assert ran.exit_code == ExitCode.UNAVAILABLE
    assert f"{shop} is no replica of tgi, vllm, llamacpp:" in ran.stderr
    assert "/info: `model_id` should be a string, but it is missing; told: `shop`" in ran.stderr
    assert "Is a vLLM server at this address?" in ran.stderr
    ran = cli("calibrate", shop, "--engine", "llamacpp", "--profile-out", tmp_path / "p.toml")
    assert f"{shop}/props: `build_info` should be a string" in ran.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "code", "told"),
    [
        (None, ExitCode.NO_INPUT, "run.journal.jsonl: No such file"),
        (b"[budget]\n", ExitCode.BAD_DATA, "run.journal.jsonl: this is no journal of a calibration"),
        (b'{"schema":"llmshed.calibration/1"}\n', ExitCode.BAD_DATA, "it does not say what was asked for"),
        (
            b'{"schema":"llmshed.calibration/1","seed":1,"lanes":{},"plan":{"mix":[],"objectives":{}}}\n',
            ExitCode.BAD_DATA,
            "the mix holds no request",
        ),
    ],
)
def test_a_run_goes_on_from_a_journal_only(
    cli: Cli, tmp_path: Path, content: bytes | None, code: ExitCode, told: str
) -> None:
    journal = tmp_path / "run.journal.jsonl"
    if content is not None:
        journal.write_bytes(content)
    ran = cli("calibrate", NOWHERE, "--resume", journal)
    assert ran.exit_code == code
    assert told in ran.stderr


def test_a_workload_that_cannot_be_read_is_told(cli: Cli, tmp_path: Path) -> None:
    absent = tmp_path / "trace.csv"
    ran = cli("calibrate", NOWHERE, "--profile-out", tmp_path / "p.toml", "--workload", absent)
    assert ran.exit_code == ExitCode.NO_INPUT
    absent.write_text("nothing of a trace\n")
    ran = cli("calibrate", NOWHERE, "--profile-out", tmp_path / "p.toml", "--workload", absent)
    assert ran.exit_code == ExitCode.BAD_DATA
