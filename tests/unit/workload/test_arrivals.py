"""Arrival processes, by counting."""

import math
import statistics
from collections.abc import Iterator
from itertools import count, islice, pairwise

import pytest

from fakes.traces import seeded
from llmshed.workload.arrivals import arrival_process, constant_arrivals, renewal_arrivals, with_arrivals
from llmshed.workload.gaps import POISSON, GapShape, Pattern, gamma_gaps
from llmshed.workload.request import TracedRequest


def test_constant_arrivals_stay_on_their_raster() -> None:
    assert list(islice(constant_arrivals(4.0), 5)) == [0.0, 0.25, 0.5, 0.75, 1.0]
    (late,) = islice(constant_arrivals(3.0), 3_000_000, 3_000_001)
    assert late == 1_000_000.0


@pytest.mark.parametrize(
    ("shape", "cv"),
    [(POISSON, 1.0), (gamma_gaps(0.5), 0.5), (gamma_gaps(3.0), 3.0), (GapShape(Pattern.WEIBULL, 0.5), 2.236)],
)
def test_each_stretch_expects_its_rate_the_first_second_too(shape: GapShape, cv: float) -> None:
    rng = seeded(21)
    stretches = [list(renewal_arrivals(shape, 2.0, rng, 100.0, 110.0)) for _ in range(4000)]
    # A stretch of 10 s expects 20; counts vary by at most about cv^2 x 20. Five standard errors.
    error = 5 * math.sqrt(max(1.0, cv**2) * 20 / 4000)
    assert statistics.fmean(map(len, stretches)) == pytest.approx(20.0, abs=error)
    first_seconds = [sum(at < 101.0 for at in stretch) for stretch in stretches]
    assert statistics.fmean(first_seconds) == pytest.approx(2.0, abs=5 * math.sqrt(max(1.0, cv**2) * 2 / 4000) * 1.5)
    assert all(100.0 <= at < 110.0 for stretch in stretches for at in stretch)


@pytest.mark.parametrize(("shape", "cv"), [(POISSON, 1.0), (gamma_gaps(0.5), 0.5), (gamma_gaps(3.0), 3.0)])
def test_the_variation_of_the_gaps_is_that_asked_for(shape: GapShape, cv: float) -> None:
    times = list(islice(renewal_arrivals(shape, 5.0, seeded(22)), 40_000))
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert statistics.pstdev(gaps) / statistics.fmean(gaps) == pytest.approx(cv, rel=0.06)
    assert min(gaps) >= 0


def test_one_seed_gives_one_process() -> None:
    runs = [list(islice(renewal_arrivals(gamma_gaps(2.0), 5.0, seeded(23)), 500)) for _ in range(20)]
    assert all(run == runs[0] for run in runs)
    assert list(islice(renewal_arrivals(gamma_gaps(2.0), 5.0, seeded(24)), 500)) != runs[0]


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_a_rate_is_positive_and_finite(rate: float) -> None:
    with pytest.raises(ValueError, match="more than 0 requests a second"):
        constant_arrivals(rate)
    with pytest.raises(ValueError, match="more than 0 requests a second"):
        renewal_arrivals(POISSON, rate, seeded())


def test_requests_at_other_times_keep_their_order_and_lengths() -> None:
    requests = [TracedRequest(float(number), number + 1, 5) for number in range(3)]
    moved = list(with_arrivals(requests, constant_arrivals(2.0)))
    assert [(one.at_seconds, one.input_tokens) for one in moved] == [(0.0, 1), (0.5, 2), (1.0, 3)]


class TestAProcessByName:
    def test_the_traces_own_arrivals_are_no_process(self) -> None:
        assert arrival_process("trace") is None

    @pytest.mark.parametrize(
        ("text", "name", "cv"),
        [
            ("constant", "constant", 0.0),
            ("poisson", "poisson", 1.0),
            ("gamma:2.5", "gamma:2.5", 2.5),
            ("gamma:0.001", "gamma:0.001", 0.001),
            ("gamma:10", "gamma:10", 10.0),
            ("gamma:01.500", "gamma:1.5", 1.5),
        ],
    )
    def test_a_name_tells_the_variation(self, text: str, name: str, cv: float) -> None:
        process = arrival_process(text)
        assert process is not None
        assert (process.name, process.interarrival_cv) == (name, cv)

    @pytest.mark.parametrize(
        "text",
        [
            "", "gamma", "gamma:", "gamma:0", "gamma:-1", "gamma:10.001", "gamma:100", "gamma:nan", "gamma:inf",
            "gamma:1e1", "gamma:1.2345", "gamma:.5", "gamma:2.5 ", "gamma:\u0662", "Poisson", "poisson:1", "weibull:2",
        ],
    )  # fmt: skip
    def test_any_other_name_is_told_with_those_that_are_accepted(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"accepted are trace, constant, poisson, .* 0.001 to 10 .* gamma:2.5"):
            arrival_process(text)

    @pytest.mark.parametrize(
        ("text", "tolerance"), [("constant", 1e-9), ("poisson", 0.02), ("gamma:0.5", 0.02), ("gamma:2.5", 0.06)]
    )
    def test_the_first_comes_at_once_and_the_gaps_have_the_rate_and_variation_asked_for(
        self, text: str, tolerance: float
    ) -> None:
        process = arrival_process(text)
        assert process is not None
        times = list(islice(process.arrivals(5.0, seeded(25)), 40_000))
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert times[0] == 0.0
        assert statistics.fmean(gaps) == pytest.approx(0.2, rel=max(4 * process.interarrival_cv / 200, 1e-9))
        cv = statistics.pstdev(gaps) / statistics.fmean(gaps)
        assert cv == pytest.approx(process.interarrival_cv, rel=tolerance, abs=1e-6)
        # Independent: what a gap is tells nothing of the next. Four standard errors of a correlation.
        if process.shape is not None:
            assert abs(statistics.correlation(gaps[:-1], gaps[1:])) < 4 / 200

    def test_another_rate_stretches_the_same_gaps(self) -> None:
        process = arrival_process("gamma:2")
        assert process is not None
        slow, fast = (list(islice(process.arrivals(rate, seeded(26)), 1000)) for rate in (1.0, 4.0))
        assert [4 * at for at in fast] == pytest.approx(slow)

    @pytest.mark.parametrize("text", ["constant", "poisson"])
    def test_its_rate_is_positive_and_finite(self, text: str) -> None:
        process = arrival_process(text)
        assert process is not None
        with pytest.raises(ValueError, match="more than 0 requests a second"):
            process.arrivals(math.inf, seeded())


def test_requests_at_other_times_are_taken_one_by_one() -> None:
    taken = []

    def endless() -> Iterator[TracedRequest]:
        for number in count():
            taken.append(number)
            yield TracedRequest(0.0, 1, 1)

    process = arrival_process("poisson")
    assert process is not None
    assert len(list(islice(with_arrivals(endless(), process.arrivals(1.0, seeded())), 3))) == 3
    assert taken == [0, 1, 2]
