"""Requests made from ServeGen's rates and lengths."""

import csv
import gzip
import json
import math
import statistics
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from fakes.traces import seeded, unpacked
from llmshed.errors import TraceError
from llmshed.workload.readers.reading import Reading
from llmshed.workload.readers.servegen import read_servegen
from llmshed.workload.request import TracedRequest

RATES = "servegen_deepseek-r1_rates.csv.gz"
LENGTHS = "servegen_deepseek-r1_lengths.json.gz"
HEADER = "window_start_s,client,rate_per_s,interarrival_cv,pattern,p1,p2\n"
ONE_LENGTH = json.dumps(
    {"quantiles": [1, 99], "clients": {"1": {"0": {"input_tokens": [10, 20], "output_tokens": [5, 5]}}}}
).encode()


def made(rates: str, lengths: bytes = ONE_LENGTH, seed: int = 1, duration: float | None = None) -> list[TracedRequest]:
    reading = Reading(seeded(seed), companion=[lengths], duration_seconds=duration)
    return list(read_servegen([(HEADER + rates).encode()], reading))


@pytest.fixture(scope="module")
def hour(data_dir: Path) -> list[TracedRequest]:
    """The first hour of the day."""
    companion = unpacked(data_dir / "traces" / LENGTHS)
    reading = Reading(seeded(41), companion=companion, duration_seconds=3600.0)
    return list(read_servegen(unpacked(data_dir / "traces" / RATES), reading))


def test_each_client_sends_in_each_window_as_often_as_told(data_dir: Path, hour: list[TracedRequest]) -> None:
    sent = Counter((one.tenant, int(one.at_seconds // 600)) for one in hour)
    off = []
    with gzip.open(data_dir / "traces" / RATES, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            window = int(row["window_start_s"]) // 600
            if window < 6:
                expected = float(row["rate_per_s"]) * 600
                # A renewal count over a long stretch varies by about cv^2 x its mean.
                error = math.sqrt(max(1.0, float(row["interarrival_cv"]) ** 2) * expected)
                off.append((sent[f"client-{row['client']}", window] - expected) / error)
    assert len(off) > 100
    assert max(map(abs, off)) < 5
    assert statistics.fmean(off) == pytest.approx(0.0, abs=4 / math.sqrt(len(off)))


def test_lengths_have_the_quantiles_told(data_dir: Path, hour: list[TracedRequest]) -> None:
    with gzip.open(data_dir / "traces" / LENGTHS, "rt", encoding="utf-8") as file:
        told = json.load(file)
    by_client: dict[str, list[TracedRequest]] = defaultdict(list)
    for one in hour:
        by_client[one.tenant.removeprefix("client-")].append(one)
    client, requests = max(by_client.items(), key=lambda pair: len(pair[1]))
    part = told["clients"][client]["0"]
    for place, percent in enumerate(told["quantiles"]):
        share = sum(one.input_tokens <= part["input_tokens"][place] for one in requests) / len(requests)
        error = 4 * math.sqrt(0.25 / len(requests)) + 0.005
        if 1 < percent < 99.9:
            assert share == pytest.approx(percent / 100, abs=error + 0.02)


def test_gaps_vary_as_the_pattern_says() -> None:
    requests = made("0,1,20,2,Gamma,0.25,0\n", duration=None)
    gaps = [later.at_seconds - earlier.at_seconds for earlier, later in pairwise(requests)]
    assert statistics.pstdev(gaps) / statistics.fmean(gaps) == pytest.approx(2.0, rel=0.08)


def test_windows_follow_one_another_and_the_last_is_as_long_as_the_one_before() -> None:
    requests = made("1000,1,1,1,Exponential,,\n1300,1,0,1,Exponential,,\n1600,1,1,1,Exponential,,\n")
    windows = Counter(int(one.at_seconds // 300) for one in requests)
    assert windows.keys() == {0, 2}
    assert all(count == pytest.approx(300, abs=5 * 17.4) for count in windows.values())


def test_a_single_window_lasts_ten_minutes() -> None:
    last = made("0,1,5,1,Exponential,,\n")[-1].at_seconds
    assert 590 < last < 600


def test_requests_of_many_clients_come_in_order(hour: list[TracedRequest]) -> None:
    assert all(earlier.at_seconds <= later.at_seconds for earlier, later in pairwise(hour))
    assert hour[-1].at_seconds < 3600
    assert len({one.tenant for one in hour}) > 20


def test_one_seed_gives_one_traffic() -> None:
    rates = "0,1,1,1,Weibull,0.5,1\n600,1,2,1,Gamma,2,1\n"
    assert all(made(rates) == made(rates) for _ in range(10))
    assert made(rates, seed=2) != made(rates)


@pytest.mark.parametrize(
    ("rates", "told"),
    [
        ("0,2,1,1,Gamma,1,1\n", "line 2: client '2' has no lengths in the second file"),
        ("0,1,1,1,Gamma,1,1\n0,1,1,1,Gamma,1,1\n", "line 3: client '1' stands twice in one window"),
        ("600,1,1,1,Gamma,1,1\n0,1,1,1,Gamma,1,1\n", "line 3: window_start_s goes back"),
        ("0,1,1,1,Pareto,1,1\n", "pattern is 'Pareto'; Exponential, Gamma, Weibull are accepted"),
        ("0,1,1,1,Gamma,0,1\n", "p1 is '0'; a shape from 0.01"),
        ("0,1,1,1,Gamma,,1\n", "p1 is ''"),
        ("0,1,nan,1,Gamma,1,1\n", "rate_per_s is 'nan'"),
        ("0,1,1e7,1,Gamma,1,1\n", "rate_per_s is '1e7'"),
        ("x,1,1,1,Gamma,1,1\n", "window_start_s is 'x'"),
    ],
)
def test_a_broken_row_is_told(rates: str, told: str) -> None:
    with pytest.raises(TraceError, match=told):
        made(rates)


def test_rates_without_lengths_are_told() -> None:
    with pytest.raises(TraceError, match="need the file of lengths"):
        next(read_servegen([HEADER.encode()], Reading(seeded())))
