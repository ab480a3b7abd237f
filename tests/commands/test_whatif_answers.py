"""What `llmshed whatif` answers: tables, one object, a page, and a bar for those who wait."""

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import stat
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli
from fakes.whatif_traces import azure, told, write_config, write_trace
from llmshed.whatif.compare import MEASURES


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_trace(tmp_path)


class TestTheAnswer:
    def test_json_holds_every_run_and_what_it_stands_on(self, cli: Cli, trace: Path) -> None:
        answer = told(cli("whatif", "--trace", trace, "--json"))
        assert list(answer) == [
            "schema", "trace", "arrivals", "replica", "configurations", "ceiling", "clients", "scale_by", "seed",
            "objectives", "gateway_seconds_per_request", "gateway_seconds_per_input_token",
            "gateway_seconds_per_output_token", "warnings", "hindcast", "runs", "differences",
        ]  # fmt: skip
        assert answer["schema"] == "llmshed.whatif/1"
        assert answer["trace"]["requests"] == 60
        assert answer["trace"]["input_tokens"]["total"] == 30 * 300 + 30 * 600
        assert set(answer["runs"][0]["report"]["lanes"]) == {"interactive"}

    def test_the_difference_is_told_for_each_scale_and_policy(self, cli: Cli, trace: Path, tmp_path: Path) -> None:
        base, other = write_config(tmp_path, 40_000), write_config(tmp_path, 1_500, "other.toml")
        options = ("--config", base, "--against", other, "--scale", "4", "--policy", "ours", "--policy", "none")
        answer = told(cli("whatif", "--trace", trace, *options, "--json"))
        ours, none = answer["differences"]
        assert (ours["policy"], ours["base"], ours["against"], ours["scale"]) == ("ours", base.name, other.name, 4)
        assert list(ours["measures"]) == [measure.name for measure in MEASURES]
        assert ours["measures"]["goodput_tokens_per_second"]["change"] < 0
        assert {change["change"] for change in none["measures"].values()} <= {0, None}
        text = cli("whatif", "--trace", trace, *options).stdout
        assert re.search(r"^What changes for ours at 4x$", text, flags=re.MULTILINE)
        assert re.search(r"^good tokens/s .* -\d+\.\d %$", text, flags=re.MULTILINE)

    def test_text_tells_all_that_is_asked_of_each_run(self, cli: Cli, trace: Path) -> None:
        text = cli("whatif", "--trace", trace, "--scale", "1,8", "--policy", "ours", "--policy", "none").stdout
        for scale in ("1x", "8x"):
            for title in (
                f"Goodput at {scale}",
                f"TTFT and TPOT at {scale}, in seconds",
                f"Requests at {scale}",
                f"Refused tries at {scale}, by reason",
                f"Starvation (in seconds) and fairness at {scale}",
                f"Replicas at {scale}, in the mean",
                f"The gate's ledger against the engines at {scale}",
                f"none at {scale}: lanes, classes, input quartiles",
            ):
                assert f"\n{title}\n" in text

    def test_tables_fit_80_columns(self, cli: Cli, trace: Path) -> None:
        text = cli("whatif", "--trace", trace, "--scale", "8", "--policy", "smallest_first").stdout
        tables = text[text.index("\nGoodput") :]
        assert max(map(len, tables.splitlines())) <= 100  # notes are sentences
        assert max(len(line) for line in tables.splitlines() if "  " in line) <= 80

    @pytest.mark.parametrize("form", ["--json", "--quiet"])
    @pytest.mark.parametrize("name", [b"a\x1b[31mb.csv", b"a\xff\xfeb.csv", "a\u202eb.csv".encode()])
    def test_names_that_a_terminal_or_a_parser_would_stumble_over_are_shown_harmless(
        self, cli: Cli, trace: Path, form: str, name: bytes
    ) -> None:
        hostile = trace.with_name(os.fsdecode(name))
        trace.rename(hostile)
        config = write_config(trace.parent, 40_000, f"{hostile.stem}.toml")
        ran = cli("whatif", "--trace", hostile, "--config", config, form)
        assert ran.exit_code == 0, ran.stderr
        assert "\ufffd" in ran.stdout
        assert not re.search("[\x1b\u202e]", ran.stdout)

    @pytest.mark.parametrize("form", ["--json", "--quiet"])
    def test_one_seed_gives_the_same_bytes_again(self, cli: Cli, trace: Path, form: str) -> None:
        options = ("--scale", "1.5,6", "--clients", "polite", "--seed", "7", form)
        first = cli("whatif", "--trace", trace, *options)
        assert first.exit_code == 0
        assert cli("whatif", "--trace", trace, *options).stdout == first.stdout

    def test_another_seed_gives_other_traffic(self, cli: Cli, trace: Path) -> None:
        def runs(seed: str) -> Any:
            return told(cli("whatif", "--trace", trace, "--scale", "2.5", "--seed", seed, "--json"))["runs"]

        assert runs("1") != runs("2")

    def test_a_reader_is_warned_of_what_was_left_out(self, cli: Cli, trace: Path) -> None:
        lines = trace.read_text().splitlines(keepends=True)
        trace.write_text("".join([*lines[:41], *(line.replace(",300,", ",9000,") for line in lines[41:])]))
        ran = cli("whatif", "--trace", trace)
        assert "llmshed: 16.7 % of the requests are infeasible and left out" in ran.stderr
        answer = told(cli("whatif", "--trace", trace, "--json"))
        assert [warning.split(":")[0] for warning in answer["warnings"]] == [
            "16.7 % of the requests are infeasible and left out"
        ]

    def test_a_reader_is_warned_of_lengths_that_are_made_up(self, cli: Cli, trace: Path) -> None:
        lines = trace.read_text().splitlines(keepends=True)
        trace.write_text("".join([*lines[:31], *(line.replace(",40\n", ",0\n") for line in lines[31:])]))
        answer = told(cli("whatif", "--trace", trace, "--json"))
        assert answer["trace"]["imputed_share"] == 0.5
        assert answer["warnings"] == ["50.0 % of the true lengths are made up from those of like requests"]

    @pytest.mark.slow
    def test_a_log_that_grows_meanwhile_is_the_same_for_every_run(self, trace: Path) -> None:
        trace.write_text(azure(400))
        with on_a_terminal("--trace", trace, "--scale", "1,2,3") as (process, terminal):
            assert b"0/3" in seen_on(terminal, until=b"0/3")
            with trace.open("a") as log:
                log.write(azure(450).removeprefix(azure(400)))
            seen_on(terminal)
            assert process.stdout is not None
            text = process.stdout.read().decode()
        assert "azure, 400 requests in" in text
        assert re.findall(r"^all +([\d,]+)", text, flags=re.MULTILINE) == ["400", "800", "1,200"]

    def test_without_a_terminal_there_is_no_bar(self, cli: Cli, trace: Path) -> None:
        assert cli("whatif", "--trace", trace).stderr == ""

    @pytest.mark.parametrize(("options", "shown"), [((), True), (("--quiet",), False)])
    def test_a_terminal_sees_a_bar_that_does_not_mix_with_the_answer(
        self, trace: Path, options: tuple[str, ...], *, shown: bool
    ) -> None:
        with on_a_terminal("--trace", trace, "--json", *options) as (process, terminal):
            assert process.stdout is not None
            answer = json.loads(process.stdout.read())
            process.wait()
            seen = seen_on(terminal)
        assert answer["trace"]["requests"] == 60
        assert (b"1/1" in seen) is shown

    def test_the_terminal_may_stop_it(self, trace: Path, tmp_path: Path) -> None:
        trace.write_text(azure(3_000, 0.019))
        page = tmp_path / "page.html"
        scales = ",".join(map(str, range(40, 60)))
        with on_a_terminal("--trace", trace, "--html", page, "--scale", scales) as (process, terminal):
            assert process.stdout is not None
            assert b"0/20" in seen_on(terminal, until=b"0/20")
            process.send_signal(signal.SIGINT)
            said = seen_on(terminal)
            assert (process.wait(30), process.stdout.read()) == (130, b"")
        assert b"Traceback" not in said
        assert not page.exists()

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
    def test_whoever_ends_it_finds_nothing_left_of_the_traffic_that_it_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
    ) -> None:
        kept = tmp_path / "kept"
        kept.mkdir()
        monkeypatch.setenv("TMPDIR", str(kept))
        with on_a_terminal("--trace", "-", "--scale", "40,50,60", stdin=azure(3_000, 0.019)) as (process, terminal):
            assert b"0/3" in seen_on(terminal, until=b"0/3")
            assert len(list(kept.iterdir())) == 1
            process.send_signal(number)
            said = seen_on(terminal)
            assert process.wait(30) == 128 + number
        assert b"Traceback" not in said
        assert list(kept.iterdir()) == []


class TestThePage:
    def test_the_page_is_whole_and_the_same_for_one_seed(self, cli: Cli, trace: Path, tmp_path: Path) -> None:
        pages = [tmp_path / "one.html", tmp_path / "two.html"]
        for page in pages:
            ran = cli("whatif", "--trace", trace, "--scale", "1,8", "--html", page)
            assert ran.exit_code == 0, ran.stderr
        text = pages[0].read_text("utf-8")
        assert text == pages[1].read_text("utf-8")
        assert text.startswith("<!DOCTYPE html>")
        assert text.endswith("</html>\n")
        assert "Goodput against the rate" in text
        assert sorted(path.name for path in tmp_path.iterdir()) == ["one.html", "trace.csv", "two.html"]

    def test_the_page_loads_nothing(self, cli: Cli, trace: Path, tmp_path: Path) -> None:
        page = tmp_path / "page.html"
        cli("whatif", "--trace", trace, "--scale", "1,8", "--html", page)
        text = page.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.findall(r"https?:|//\w|@import|<script|<link|<img|\bsrc=", text)
        assert set(re.findall(r'href="([^"])', text)) <= {"#"}

    def test_a_name_that_is_markup_stays_text(self, cli: Cli, trace: Path, tmp_path: Path) -> None:
        hostile = tmp_path / "<img src=x onerror=alert(1)>.csv"
        hostile.write_bytes(trace.read_bytes())
        page = tmp_path / "page.html"
        assert cli("whatif", "--trace", hostile, "--html", page).exit_code == 0
        assert "<img" not in page.read_text("utf-8")
        assert "&lt;img src=x onerror=alert(1)&gt;.csv" in page.read_text("utf-8")

    def test_json_and_page_are_made_in_one_run(self, cli: Cli, trace: Path, tmp_path: Path) -> None:
        page = tmp_path / "page.html"
        assert told(cli("whatif", "--trace", trace, "--json", "--html", page))["seed"] == 0
        assert page.is_file()

    def test_an_older_page_is_replaced_through_its_link_and_keeps_no_strange_mode(
        self, cli: Cli, trace: Path, tmp_path: Path
    ) -> None:
        page, link = tmp_path / "page.html", tmp_path / "latest.html"
        page.write_text("old")
        link.symlink_to(page)
        assert cli("whatif", "--trace", trace, "--html", link).exit_code == 0
        assert link.is_symlink()
        assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
        assert stat.S_IMODE(page.stat().st_mode) == stat.S_IMODE(trace.stat().st_mode)

    @pytest.mark.parametrize(
        ("place", "complaint"),
        [
            ("{}/none/page.html", "there is no directory"),
            ("{}/.", "it is a directory"),
            ("", "it is a directory"),
            ("-", "the name of a file is needed"),
        ],
    )
    def test_a_page_that_cannot_be_written_is_told_before_the_runs(
        self, cli: Cli, tmp_path: Path, place: str, complaint: str
    ) -> None:
        ran = cli("whatif", "--trace", "/nowhere", "--html", place.format(tmp_path))
        assert ran.exit_code == 74
        assert complaint in ran.stderr

    def test_a_page_for_which_there_is_no_room_is_named(self, cli: Cli, trace: Path) -> None:
        ran = cli("whatif", "--trace", trace, "--html", "/dev/full")
        assert (ran.exit_code, ran.stdout) == (74, "")
        assert ran.stderr == "llmshed: --html /dev/full: cannot be written: No space left on device\n"

    def test_a_page_may_have_as_long_a_name_as_any_file(self, cli: Cli, trace: Path, tmp_path: Path) -> None:
        page = tmp_path / f"{'p' * 250}.html"
        assert cli("whatif", "--trace", trace, "--html", page).exit_code == 0
        assert page.read_text("utf-8").endswith("</html>\n")

    @pytest.mark.parametrize("option", ["--trace", "--config", "--against", "--replica"])
    def test_a_page_never_replaces_what_is_read(self, cli: Cli, trace: Path, tmp_path: Path, option: str) -> None:
        config = write_config(tmp_path, 40_000)
        read = trace if option == "--trace" else config
        others = () if option == "--trace" else ("--trace", trace)
        ran = cli("whatif", *others, option, read, "--html", tmp_path / "." / read.name)
        assert (ran.exit_code, ran.stdout) == (74, "")
        assert "this file is read" in ran.stderr

    def test_without_matplotlib_the_page_has_its_tables(
        self, cli: Cli, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        page = tmp_path / "page.html"
        ran = cli("whatif", "--trace", trace, "--html", page)
        assert ran.exit_code == 0
        assert "pip install 'llmshed[plots]'" in ran.stderr
        assert "<svg" not in page.read_text("utf-8")
        assert "Goodput at 1x" in page.read_text("utf-8")


@contextlib.contextmanager
def on_a_terminal(*arguments: str | Path, stdin: str = "") -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """Run the program with a terminal for its messages; give its process and the other side of the terminal."""
    command = [sys.executable, "-m", "llmshed.commands", "whatif", *map(str, arguments)]
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs) as process:
            os.close(theirs)
            try:
                assert process.stdin is not None
                process.stdin.write(stdin.encode())
                process.stdin.close()
                yield process, ours
            finally:
                process.kill()
    finally:
        os.close(ours)


def seen_on(terminal: int, until: bytes | None = None) -> bytes:
    """Return what was written to a terminal, to the end or until this was seen."""
    seen = b""
    with contextlib.suppress(OSError):  # the other side is closed
        while (until is None or until not in seen) and (chunk := os.read(terminal, 65536)):
            seen += chunk
    return seen
