"""`llmshed diagnose`: a real Prometheus that holds two hours of two sites, one of which loses replicas."""

import csv
import gzip
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.incident_lines import exposition, hour
from fakes.prometheus import fill, free_port, needs_prometheus, running
from llmshed.clock import SystemClock

LLMSHED = (sys.executable, "-m", "llmshed.commands")
SPANS = ("--since", "30m", "--baseline", "25m", "--step", "15s")


def vllm_lines(data_dir: Path, began: int) -> Iterator[tuple[str, str]]:
    """Yield a measured overload of vLLM, slowed to a sample each 15 s."""
    with gzip.open(data_dir / "metrics" / "vllm_overload_timeline.csv.gz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["run"] == "scale2000"]
    for number, row in enumerate(rows[:230]):
        at = began + 15 * number
        yield "vllm:num_requests_waiting gauge", f"vllm:num_requests_waiting {row['num_pending']} {at}"
        yield "vllm:num_requests_running gauge", f"vllm:num_requests_running {row['num_running']} {at}"
        yield "vllm:kv_cache_usage_perc gauge", f"vllm:kv_cache_usage_perc {float(row['kv_cache_pct']) / 100} {at}"
        yield "DCGM_FI_DEV_GPU_UTIL gauge", f"DCGM_FI_DEV_GPU_UTIL {row['gpu_util_pct']} {at}"


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("prometheus")
    began = int(SystemClock().wall()) // 15 * 15 - 3600
    fill(folder, exposition(hour("calm", began, None), hour("lost", began, began + 2700)))
    with running(folder) as url:
        yield url


@needs_prometheus
@pytest.mark.slow
def test_a_lost_replica_is_the_cause(cli: Any, prometheus: str) -> None:
    ran = cli("diagnose", "-p", prometheus, *SPANS, "--match", 'site="lost"', "--json")
    assert ran.exit_code == 2, ran.stderr
    found = ran.json()
    assert (found["schema"], found["finding"]) == ("llmshed.diagnose/1", "overload")
    (cause,) = found["causes"]
    assert cause["cause"] == "replica_loss"
    assert any("replicas that take work: 33 %" in sentence for sentence in cause["for"])
    up = next(signal for signal in found["signals"] if signal["name"] == "replicas_up")
    assert up["departed"] is not None
    assert up["departed"].endswith("Z")
    assert 'site="lost"' in up["query"]
    assert found["change"]["watch"][0] == "replicas_up"


@needs_prometheus
@pytest.mark.slow
def test_the_page_stands_alone_and_says_what_the_terminal_says(cli: Any, prometheus: str, tmp_path: Path) -> None:
    page = tmp_path / "incident.html"
    ran = cli("diagnose", "-p", prometheus, *SPANS, "--match", 'site="lost"', "--html", str(page))
    assert ran.exit_code == 2, ran.stderr
    text = page.read_text("utf-8")
    assert "Cause: replica loss" in text
    assert "Change one thing" in text
    assert text.count("<svg") > 5
    assert not re.search(r"(?:src|href)=[\"'](?!#)", text)
    wrong = cli("diagnose", "-p", prometheus, *SPANS, "--html", str(tmp_path / "none" / "page.html"))
    assert wrong.exit_code != 0
    assert f"there is no directory {tmp_path / 'none'}" in wrong.stderr


@needs_prometheus
@pytest.mark.slow
def test_watching_looks_again_until_it_is_interrupted(prometheus: str) -> None:
    options = ("diagnose", "-p", prometheus, *SPANS, "--match", 'site="lost"', "--format", "nagios", "--watch", "1s")
    with subprocess.Popen([*LLMSHED, *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first, second = process.stdout.readline(), process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert first == second
    assert first.startswith("LLMSHED CRITICAL")
    assert process.returncode == 130


@needs_prometheus
@pytest.mark.slow
def test_a_site_that_is_well_is_called_so(cli: Any, prometheus: str) -> None:
    ran = cli("diagnose", "-p", prometheus, *SPANS, "--match", 'site="calm"')
    assert ran.exit_code == 0, ran.stdout
    assert ran.stdout.startswith("No overload")
    assert "Cause" not in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 100


@needs_prometheus
@pytest.mark.slow
@pytest.mark.parametrize(("fail_on", "code"), [("warning", 2), ("overload", 2), ("never", 0)])
def test_the_exit_code_is_as_wished(cli: Any, prometheus: str, fail_on: str, code: int) -> None:
    ran = cli(
        "diagnose", "-p", prometheus, *SPANS, "--match", 'site="lost"', "--fail-on", fail_on, "--format", "nagios"
    )
    assert ran.exit_code == code
    assert ran.stdout.startswith("LLMSHED CRITICAL - Overload")
    assert "Cause: replica_loss. | missed=" in ran.stdout
    assert ran.stdout.count("\n") == 1


@needs_prometheus
@pytest.mark.slow
def test_without_a_gateway_nothing_is_claimed_and_the_exit_code_says_so(cli: Any, prometheus: str) -> None:
    ran = cli("diagnose", "-p", prometheus, *SPANS, "--match", 'site="nowhere"')
    assert ran.exit_code == 3
    assert "Not enough data" in ran.stdout


@needs_prometheus
@pytest.mark.slow
def test_a_measured_queue_in_vllm_is_called_neither_compute_nor_cache(cli: Any, tmp_path: Path, data_dir: Path) -> None:
    began = int(SystemClock().wall()) // 15 * 15 - 3600
    fill(tmp_path, exposition(vllm_lines(data_dir, began)))
    with running(tmp_path) as url:
        found = cli("diagnose", "-p", url, *SPANS, "--json").json()
    values = {signal["name"]: signal["value"] for signal in found["signals"]}
    assert values["engine_waiting"] is not None
    assert 0 <= values["kv_used"] < 0.47, "a share, whatever its name says"
    assert 0 <= values["gpu"] <= 1
    assert (found["finding"], found["causes"]) == ("unknown", [])


def test_where_no_prometheus_is_the_command_says_so(cli: Any) -> None:
    ran = cli("diagnose", "-p", f"http://127.0.0.1:{free_port()}")
    assert ran.exit_code == 69
    assert ran.stderr.startswith("llmshed: no Prometheus answers at http://127.0.0.1:")
    assert ran.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--since", "1y"), "--since '1y': a span as in"),
        (("--since", "1s"), "from 1m to 30d"),
        (("--step", "0s"), "--step '0s'"),
        (("-p", "ftp://x"), "an address as in"),
        (("--explain", "nothing"), "must be `all` or one of interactive_arrivals"),
        (("--ca-file", "/nowhere/at/all"), "there is no such file"),
    ],
)
def test_what_cannot_be_is_refused_with_what_is_accepted(cli: Any, arguments: tuple[str, str], told: str) -> None:
    ran = cli("diagnose", *arguments)
    assert ran.exit_code == 64
    assert told in " ".join(ran.stderr.split())


def test_two_kinds_of_credentials_are_refused_and_none_is_repeated(cli: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hush")
    both = cli("diagnose", "--bearer-file", str(secret), "--basic-file", str(secret))
    assert both.exit_code == 64
    one = cli("diagnose", "--basic-file", str(secret))
    assert one.exit_code == 64
    assert "USER:PASSWORD" in one.stderr
    assert "hush" not in one.stderr


def test_queries_can_be_looked_at(cli: Any) -> None:
    shown = cli("diagnose", "--explain", "all", "--match", 'job="x"')
    assert shown.exit_code == 0
    assert shown.stdout.count("# ") > 30
    assert 'llmshed_queue_oldest_age_seconds{lane="interactive",job="x"}' in shown.stdout
