"""`llmshed replay`: a source at a simulated replica and at what is none, and logs with nothing left but lengths."""

import csv
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

from conftest import Cli
from fakes.logs import line
from fakes.programs import LLMSHED
from fakes.simulated_process import QUICK, simulated_process
from fakes.traces import seeded
from fakes.whatif_traces import azure, flowed
from llmshed.workload.formats import sniff
from llmshed.workload.readers.reading import Reading
from llmshed.workload.readers.sanitized import COLUMNS

NOWHERE = "http://127.0.0.1:1"
NO_ADDRESSES = ("", "http://", "ftp://x", "http://h:99999", "http://h:-1", "http://h:a", "http://:80", "[::1", "a b")


@pytest.fixture(scope="module")
def replica() -> Iterator[str]:
    with simulated_process(*QUICK) as url:
        yield url


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(azure(requests=20, gap_seconds=0.05))
    return path


@pytest.mark.slow
class TestAReplica:
    def test_all_requests_are_answered_and_told(self, cli: Cli, replica: str, trace: Path, tmp_path: Path) -> None:
        samples = tmp_path / "samples.csv"
        ran = cli("replay", trace, "--to", replica, "--lengths", "trace", "--samples", samples, "--json", "--force")
        assert ran.exit_code == 0, ran.stderr
        told = ran.json()
        assert (told["schema"], told["target"]["kind"], told["target"]["api"]) == (
            "llmshed.replay/1",
            "replica",
            "text",
        )
        (lane,) = told["lanes"].values()
        assert (lane["requests"], lane["tries"], lane["finished"], lane["refused_tries"]) == (20, 20, 20, {})
        assert lane["ttft_seconds"]["p50"] > 0
        assert told["generator_limited"] is bool(told["generator"]["limits"])
        with samples.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert {(row["input_tokens"], row["output_tokens"]) for row in rows} == {("300", "40"), ("600", "40")}
        assert {row["outcome"] for row in rows} == {"finished"}
        planned = sorted(float(row["planned_seconds"]) for row in rows)
        assert planned == pytest.approx([0.05 * number for number in range(20)], abs=1e-5)

    def test_the_replica_counts_what_was_meant_as_a_chat_too(self, cli: Cli, replica: str, trace: Path) -> None:
        before = _prompt_tokens(replica)
        options = ("--api", "chat", "--no-probe", "--speed", "4", "--limit", "10", "--json", "--force")
        ran = cli("replay", trace, "--to", replica, *options)
        assert ran.exit_code == 0, ran.stderr
        assert _prompt_tokens(replica) - before == 5 * 300 + 5 * 600

    def test_histograms_are_sent_at_a_rate_for_a_time(self, cli: Cli, replica: str, tmp_path: Path) -> None:
        scrape = tmp_path / "metrics.prom"
        names = ("tgi_request_input_length", "tgi_request_generated_tokens")
        scrape.write_text("".join(f'# TYPE {name} histogram\n{name}_bucket{{le="64"}} 900\n' for name in names))
        pace = ("--rate", "40", "--duration", "0.5", "--arrivals", "constant", "--lengths", "trace")
        ran = cli("replay", scrape, "--to", replica, *pace, "--no-probe", "--force", "--json")
        assert ran.exit_code == 0, ran.stderr
        told = ran.json()
        assert (told["source"]["format"], told["arrivals"]) == ("prometheus", "constant at 40.0 requests/s")
        assert told["lanes"]["all"]["finished"] == 20

    def test_a_generator_that_cannot_keep_its_plan_says_so(self, cli: Cli, replica: str, tmp_path: Path) -> None:
        trace = tmp_path / "lengths.csv"
        trace.write_text(",".join(COLUMNS) + "\n" + "".join(f"{at}.0,bulk,t,20,,2,1\n" for at in range(400)))
        options = (
            "--rate",
            "100000",
            "--arrivals",
            "constant",
            "--lengths",
            "trace",
            "--no-probe",
            "--force",
            "--json",
        )
        ran = cli("replay", trace, "--to", replica, *options)
        assert ran.exit_code == 0, ran.stderr
        told = ran.json()
        assert told["generator_limited"] is True
        assert told["generator"]["limits"][0].startswith("a hundredth of the sends was")
        assert "generator_limited: a hundredth of the sends was" in ran.stderr

    def test_a_replica_that_others_use_is_left_alone(self, cli: Cli, replica: str, trace: Path) -> None:
        long = '{"inputs":"a","parameters":{"max_new_tokens":8000}}'
        command = ["curl", "-sN", "-o", os.devnull, "-H", "content-type: application/json", "-d", long]
        with subprocess.Popen([*command, f"{replica}/generate_stream"]) as other:
            try:
                ran = cli("replay", trace, "--to", replica)
            finally:
                other.kill()
        assert ran.exit_code == 75
        assert "is not idle: requests that run there: 1" in ran.stderr

    def test_another_engine_than_the_one_named_is_told(self, cli: Cli, replica: str, trace: Path) -> None:
        ran = cli("replay", trace, "--to", replica, "--engine", "vllm")
        assert (ran.exit_code, ran.stdout) == (69, "")
        assert f"llmshed: {replica} is no gateway and no replica of vllm: {replica}/version answered 404" in ran.stderr
        ran = cli("replay", trace, "--to", replica, "--engine", "vllm", "--api", "chat")
        assert ran.exit_code == 64
        assert "--engine vllm: chats are sent as tgi takes them; add --api text" in flowed(ran.stderr)

    @pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full, which is always full")
    def test_a_full_disk_under_the_samples_is_told(self, cli: Cli, replica: str, trace: Path) -> None:
        options = ("--limit", "1", "--no-probe", "--force", "--samples", "/dev/full")
        ran = cli("replay", trace, "--to", replica, *options)
        assert (ran.exit_code, ran.stdout) == (74, "")
        assert "llmshed: --samples /dev/full: cannot be written: No space left on device\n" in ran.stderr

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
    def test_it_is_ended_with_what_was_measured(self, replica: str, tmp_path: Path, number: signal.Signals) -> None:
        path, samples = tmp_path / "long.csv", tmp_path / "samples.csv"
        path.write_text(azure(requests=200, gap_seconds=0.2))
        options = ("--to", replica, "--no-probe", "--force", "--json", "--samples", str(samples))
        command = [str(LLMSHED), "replay", str(path), *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None and not (samples.exists() and samples.read_text("utf-8").count("\n") > 2):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.05)
            process.send_signal(number)
            out, _ = process.communicate(timeout=30)
        assert process.returncode == 130
        told = orjson.loads(out)
        assert told["interrupted"] is True
        assert 2 <= sum(lane["finished"] for lane in told["lanes"].values()) < 200


def _prompt_tokens(replica: str) -> float:
    out = subprocess.run(["curl", "-s", f"{replica}/metrics"], check=True, capture_output=True, text=True).stdout
    sums = [row for row in out.splitlines() if row.startswith("tgi_request_input_length_sum")]
    return float(sums[0].split()[-1]) if sums else 0.0


class TestMistakes:
    def test_nobody_there_is_told(self, cli: Cli, trace: Path) -> None:
        ran = cli("replay", trace, "--to", NOWHERE)
        assert (ran.exit_code, ran.stdout) == (69, "")
        assert "nobody answers at http://127.0.0.1:1/" in ran.stderr

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ((), "SOURCE is missing"),
            (("trace.csv",), "--to URL is missing"),
            (("trace.csv", "--to", NOWHERE, "--samples", "-"), "--samples -: the name of a file is needed"),
            (("trace.csv", "--to", NOWHERE, "--rate", "1", "--speed", "2"), "--speed is a factor on the trace's own"),
            (("trace.csv", "--to", NOWHERE, "--rate", "1", "--arrivals", "trace"), "take --speed"),
            (("trace.csv", "--to", NOWHERE, "--arrivals", "bursts"), "--arrivals 'bursts'"),
            (("trace.csv", "--to", NOWHERE, "-o", "x"), "--output is where --sanitize writes"),
            (("--sanitize", "log"), "--sanitize needs --output FILE"),
            (("--sanitize", "-", "-o", "x"), "the log is read twice"),
            (("trace.csv", "--sanitize", "log", "-o", "x"), "--sanitize sends nothing: SOURCE belongs to a run"),
            (
                ("--sanitize", "log", "-o", "x", "--to", NOWHERE, "--rate", "5", "--replica", "--no-probe"),
                "--sanitize sends nothing: --to, --gateway, --rate, --probe belong to a run of its own",
            ),
            (("--sanitize", "log", "-o", "x", "--seed", "0"), "--sanitize sends nothing: --seed belongs"),
        ],
    )
    def test_options_that_contradict_each_other_are_usage(self, cli: Cli, options: tuple[str, ...], said: str) -> None:
        ran = cli("replay", *options)
        assert ran.exit_code == 64
        assert said in flowed(ran.stderr)

    @pytest.mark.parametrize(
        ("address", "said"),
        [
            *((one, f"--to {one!r}: an address as in http://127.0.0.1:8080 is needed") for one in NO_ADDRESSES),
            ("http://h/?key=1", "an address without ? and # is needed"),
            ("http://me:secret@h", "--to: an address without a user is needed"),
        ],
    )
    def test_what_is_no_address_is_told_before_anybody_is_asked(self, cli: Cli, address: str, said: str) -> None:
        ran = cli("replay", "trace.csv", "--to", address)
        assert ran.exit_code == 64
        assert said in flowed(ran.stderr)
        assert "secret" not in ran.stderr

    def test_the_source_is_not_overwritten_by_samples(self, cli: Cli, trace: Path) -> None:
        before = trace.read_bytes()
        ran = cli("replay", trace, "--to", NOWHERE, "--samples", trace)
        assert (ran.exit_code, trace.read_bytes()) == (64, before)
        assert "that is the source itself" in flowed(ran.stderr)


class TestSanitizing:
    def test_what_is_left_is_told_and_read_again(self, cli: Cli, tmp_path: Path) -> None:
        log, out = tmp_path / "decisions.jsonl", tmp_path / "lengths.csv"
        lines = (line(at, tenant=f"tenant-{at % 2}", request_id=f"id-{at}-0123456789") for at in range(4))
        log.write_bytes(b"".join(lines))
        ran = cli("replay", "--sanitize", log, "-o", out, "--json")
        assert ran.exit_code == 0, ran.stderr
        told = ran.json()
        assert (told["requests"], told["tenants"], told["lanes"]) == (4, 2, {"interactive": 4})
        assert (told["strings_looked_for"] > 4 * 4, told["strings_found"]) == (True, 0)
        assert "tenant-" not in out.read_text()
        chunks = [out.read_bytes()]
        requests = list(sniff(chunks).read(chunks, Reading(seeded())))
        assert [(one.at_seconds, one.input_tokens, one.true_output_tokens) for one in requests] == [
            (float(at), 100, 20) for at in range(4)
        ]

    def test_the_log_itself_is_not_overwritten(self, cli: Cli, tmp_path: Path) -> None:
        log = tmp_path / "decisions.jsonl"
        log.write_bytes(line(0))
        ran = cli("replay", "--sanitize", log, "-o", log)
        assert (ran.exit_code, log.read_bytes()) == (64, line(0))

    def test_what_is_no_log_leaves_nothing(self, cli: Cli, tmp_path: Path) -> None:
        log, out = tmp_path / "trace.csv", tmp_path / "lengths.csv"
        log.write_text(azure())
        ran = cli("replay", "--sanitize", log, "-o", out)
        assert ran.exit_code == 65
        assert [path.name for path in tmp_path.iterdir()] == ["trace.csv"]

    def test_a_log_of_no_request_leaves_nothing(self, cli: Cli, tmp_path: Path) -> None:
        log, out = tmp_path / "decisions.jsonl", tmp_path / "lengths.csv"
        log.write_bytes(b"")
        ran = cli("replay", "--sanitize", log, "-o", out)
        assert (ran.exit_code, ran.stdout) == (65, "")
        assert ran.stderr == f"llmshed: {log}: it holds no request, so there is nothing to keep\n"
        assert [path.name for path in tmp_path.iterdir()] == ["decisions.jsonl"]

    def test_a_place_that_cannot_be_written_is_told(self, cli: Cli, tmp_path: Path) -> None:
        log = tmp_path / "decisions.jsonl"
        log.write_bytes(line(0))
        ran = cli("replay", "--sanitize", log, "-o", tmp_path / "nowhere" / "out.csv")
        assert ran.exit_code == 74

    def test_a_place_of_no_file_is_left_as_it_is(self, cli: Cli, tmp_path: Path) -> None:
        log, circle, pipe = (tmp_path / name for name in ("decisions.jsonl", "circle", "pipe"))
        log.write_bytes(line(0))
        circle.symlink_to(circle)
        os.mkfifo(pipe)
        for place, said in ((circle, "a symbolic link leads back"), (pipe, "a device or a pipe"), (tmp_path, "a file")):
            ran = cli("replay", "--sanitize", log, "-o", place)
            assert (ran.exit_code, ran.stdout) == (74, "")
            assert ran.stderr.startswith(f"llmshed: --output {place}: ")
            assert said in ran.stderr
        assert (pipe.is_fifo(), circle.is_symlink(), len(list(tmp_path.iterdir()))) == (True, True, 3)
