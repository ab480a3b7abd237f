"""`llmshed whatif` on a decision log: first the hindcast, then either a proposal or why there is none."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from conftest import Cli
from fakes.hindcasts import config_text, replica_file, too_much, virtual_log
from fakes.logs import line
from llmshed.errors import ExitCode
from llmshed.workload.clients import ClientModel

URLS = ("http://10.0.0.7:8080", "http://10.0.0.8:8080")


class Case(NamedTuple):
    """A log with what it was written under, and the options that name them."""

    log: Path
    config: Path
    right: Path
    wrong: Path

    def options(self, replica: Path, *more: str | Path) -> tuple[str | Path, ...]:
        return ("whatif", "--trace", self.log, "--replica", replica, "x2", "--config", self.config, *more)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Return the log of two replicas that had room for everybody, so that no length is made up."""
    folder = tmp_path_factory.mktemp("hindcast")
    log, config = folder / "decisions.jsonl", folder / "llmshed.toml"
    log.write_bytes(b"".join(virtual_log(too_much(60.0, 4.0))))
    config.write_text(config_text(URLS))
    return Case(log, config, replica_file(folder), replica_file(folder, 1.4))


def other_config(case: Case) -> Path:
    path = case.config.with_name("other.toml")
    path.write_text(config_text(URLS, 3_000))
    return path


class TestAReplicaThatIsRight:
    def test_the_hindcast_is_told_and_the_proposal_after_it(self, cli: Cli, case: Case) -> None:
        ran = cli(*case.options(case.right, "--against", other_config(case)))
        assert ran.exit_code == 0, ran.stderr
        told = ran.stdout
        assert re.search(r"^interactive: TTFT p95 +\d\S* s +\d\S* s +\S+ %$", told, flags=re.MULTILINE)
        assert re.search(r"^The hindcast is off by \S+ % at most \(.*\), within the 15.0 %", told, flags=re.MULTILINE)
        assert told.index("Hindcast:") < told.index("What changes for ours at 1x")

    def test_ceilings_and_retries_are_those_of_the_log(self, cli: Cli, case: Case) -> None:
        told = cli(*case.options(case.right)).stdout
        assert "asked: those that the trace holds" in told
        assert "none: the log's own retries come as they came" in told

    def test_other_arrivals_are_for_the_runs_and_the_hindcast_is_of_the_logs_own(self, cli: Cli, case: Case) -> None:
        ran = cli(*case.options(case.right, "--arrivals", "gamma:4", "--json"))
        plain, moved = cli(*case.options(case.right, "--json")).json(), ran.json()
        assert moved["hindcast"] == plain["hindcast"]
        assert moved["runs"] != plain["runs"]
        told = cli(*case.options(case.right, "--arrivals", "gamma:4")).stdout
        assert "none: the log's own retries come as requests of their own" in told

    def test_json_has_every_row(self, cli: Cli, case: Case) -> None:
        answer = cli(*case.options(case.right, "--json")).json()
        hindcast = answer["hindcast"]
        assert hindcast["holds"] is True
        assert hindcast["largest_difference"] == max(
            row["difference"] for row in hindcast["rows"] if row["difference"] is not None
        )
        assert {row["lane"] for row in hindcast["rows"]} == {"interactive", "bulk"}
        assert len(answer["runs"]) == 1

    def test_a_part_of_the_log_is_held_against_that_part(self, cli: Cli, case: Case) -> None:
        hindcast = cli(*case.options(case.right, "--duration", "40", "--json")).json()["hindcast"]
        assert 35 < hindcast["seconds"] <= 40
        assert sum(lane["tries"] for lane in hindcast["logged"].values()) < 200

    def test_the_same_seed_gives_the_same_bytes(self, cli: Cli, case: Case) -> None:
        first, second = (cli(*case.options(case.right, "--json", "--seed", "3")).stdout for _ in range(2))
        assert first == second


class TestAReplicaThatIsWrong:
    def test_nothing_is_proposed_and_the_exit_status_says_so(self, cli: Cli, case: Case) -> None:
        ran = cli(*case.options(case.wrong, "--against", other_config(case), "--scale", "1,2"))
        assert ran.exit_code == 12
        assert re.search(
            r"^No proposal is made: the hindcast is off by \S+ % .*, above 15.0 %", ran.stdout, re.MULTILINE
        )
        assert "What changes" not in ran.stdout
        assert "Goodput" not in ran.stdout

    def test_json_holds_the_errors_and_no_run(self, cli: Cli, case: Case) -> None:
        ran = cli(*case.options(case.wrong, "--against", other_config(case), "--json"))
        answer = orjson.loads(ran.stdout)
        assert ran.exit_code == ExitCode.NO_PROPOSAL
        assert answer["hindcast"]["holds"] is False
        assert answer["hindcast"]["largest_difference"] > 0.15
        assert (answer["runs"], answer["differences"]) == ([], [])

    def test_the_page_holds_the_errors_alone(self, cli: Cli, case: Case, tmp_path: Path) -> None:
        page = tmp_path / "page.html"
        assert cli(*case.options(case.wrong, "--html", page)).exit_code == ExitCode.NO_PROPOSAL
        text = page.read_text("utf-8")
        HTMLParser().feed(text)
        assert "No proposal is made" in text
        assert "Against what happened" in text
        assert "Goodput" not in text


class TestWhatIsKnownToDiffer:
    def test_another_configuration_than_the_logs_is_told(self, cli: Cli, case: Case, tmp_path: Path) -> None:
        log = tmp_path / "decisions.jsonl"
        log.write_bytes(b"".join(line(at, config_version="c0ffee") for at in range(60)))
        ran = cli("whatif", "--trace", log, "--replica", case.right, "x2", "--config", case.config)
        assert re.search(r"configuration c0ffee \(60 tries\), and llmshed.toml is [0-9a-f]{12}", ran.stderr)

    def test_another_number_of_replicas_is_told(self, cli: Cli, case: Case) -> None:
        ran = cli("whatif", "--trace", case.log, "--replica", case.right, "x3", "--config", case.config)
        assert "the log names 2 replicas, and 3 are simulated" in ran.stderr

    def test_a_log_of_few_requests_is_no_ground_for_a_proposal(self, cli: Cli, case: Case, tmp_path: Path) -> None:
        log = tmp_path / "decisions.jsonl"
        log.write_bytes(b"".join(line(at) for at in range(20)))
        ran = cli("whatif", "--trace", log, "--replica", case.right, "x2", "--config", case.config)
        assert ran.exit_code == ExitCode.NO_PROPOSAL
        assert "No proposal is made: no lane of the log has 50 tries" in ran.stdout

    def test_a_single_request_has_no_duration_and_no_crash(self, cli: Cli, case: Case, tmp_path: Path) -> None:
        log = tmp_path / "decisions.jsonl"
        log.write_bytes(line(0))
        ran = cli("whatif", "--trace", log, "--replica", case.right, "x2", "--config", case.config)
        assert ran.exit_code == ExitCode.NO_PROPOSAL

    def test_a_broken_line_is_told_with_the_file(self, cli: Cli, case: Case, tmp_path: Path) -> None:
        log = tmp_path / "decisions.jsonl"
        log.write_bytes(line(0) + b'{"schema":"llmshed.decision/1"')
        ran = cli("whatif", "--trace", log, "--replica", case.right, "--config", case.config)
        assert ran.exit_code == ExitCode.BAD_DATA
        assert f"{log}: line 2: not a line of llmshed.decision/1" in ran.stderr


@pytest.mark.slow
def test_a_client_model_makes_the_retries_that_are_folded(cli: Cli, case: Case, tmp_path: Path) -> None:
    named = [replace(request, session=f"f{number}") for number, request in enumerate(too_much(40.0, 16.0))]
    log = tmp_path / "decisions.jsonl"
    log.write_bytes(b"".join(virtual_log(named, ClientModel.SDK)))
    options = ("whatif", "--trace", log, "--replica", case.right, "x2", "--config", case.config, "--json")
    as_logged, folded = (orjson.loads(cli(*options, *more).stdout) for more in ((), ("--clients", "sdk")))
    assert folded["trace"]["requests"] == len(named)
    assert as_logged["trace"]["requests"] > 1.1 * len(named)
    assert any("a retry, which stands in its first try" in warning for warning in folded["warnings"])
    assert folded["hindcast"]["simulated"]["bulk"]["tries"] == pytest.approx(
        folded["hindcast"]["logged"]["bulk"]["tries"], rel=0.15
    )
