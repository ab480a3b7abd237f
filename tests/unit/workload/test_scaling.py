"""A trace faster, and more of it."""

import statistics
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from fakes.traces import read_file, seeded
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.workload.readers.azure import read_azure
from llmshed.workload.readers.mooncake import read_mooncake
from llmshed.workload.request import TracedRequest
from llmshed.workload.scaling import LATEST_START_SECONDS, in_rate, in_time, original_tenant


def steady(count: int, every_seconds: float = 1.0) -> list[TracedRequest]:
    return [TracedRequest(number * every_seconds, number + 1, 5) for number in range(count)]


def dispersion(times: list[float], window_seconds: float, start: float, end: float) -> float:
    """Variance over mean of the counts in windows: 1 for Poisson."""
    counts = Counter(int((at - start) / window_seconds) for at in times if start <= at < end)
    per_window = [counts[window] for window in range(int((end - start) / window_seconds))]
    return statistics.pvariance(per_window) / statistics.fmean(per_window)


@pytest.fixture(scope="module")
def conversation(data_dir: Path) -> list[TracedRequest]:
    return read_file(read_azure, data_dir / "traces" / "azure_conv_2023_first40min.csv.gz")


def test_in_time_divides_the_arrivals_and_leaves_the_rest() -> None:
    faster = list(in_time(steady(3), 4.0))
    assert [(one.at_seconds, one.input_tokens) for one in faster] == [(0.0, 1), (0.25, 2), (0.5, 3)]


def test_a_factor_of_one_is_the_trace_itself() -> None:
    assert list(in_rate(steady(50), 1.0, seeded())) == steady(50)


@pytest.mark.parametrize("factor", [0.25, 0.5, 1.0, 1.5, 2.0, 5.0, 10.0])
def test_in_rate_gives_that_many_requests_in_order(conversation: list[TracedRequest], factor: float) -> None:
    scaled = list(in_rate(conversation, factor, seeded(2)))
    rest = factor % 1.0
    # Whole copies are exact; of the rest, four standard errors of a binomial.
    error = 4 * (rest * (1 - rest) * len(conversation)) ** 0.5
    assert len(scaled) == pytest.approx(factor * len(conversation), abs=error)
    assert all(earlier.at_seconds <= later.at_seconds for earlier, later in pairwise(scaled))
    assert scaled[-1].at_seconds <= conversation[-1].at_seconds + LATEST_START_SECONDS


def test_bursts_of_a_second_stay_those_of_independent_users_and_rush_hours_scale(
    conversation: list[TracedRequest],
) -> None:
    # stats.json: 1.335 at one second, 15.125 at a minute. Independent copies keep the first; a rate that scales as a
    # whole makes the excess of the second over 1 grow with the factor.
    once = [one.at_seconds for one in conversation]
    tenfold = [one.at_seconds for one in in_rate(conversation, 10.0, seeded(3))]
    assert dispersion(once, 1.0, 60.0, 2340.0) == pytest.approx(1.335, abs=0.1)
    short = dispersion(tenfold, 1.0, 60.0, 2340.0)
    assert 1.335 < short < 1.335 * 10 / 2, "between independent copies and ten that come together"
    assert dispersion(tenfold, 60.0, 60.0, 2340.0) > 5 * dispersion(once, 60.0, 60.0, 2340.0)


def test_a_short_trace_stays_about_as_short() -> None:
    scaled = list(in_rate(steady(400, 0.1), 10.0, seeded(3), duration_seconds=40.0))
    assert len(scaled) == 4000
    assert scaled[-1].at_seconds - scaled[0].at_seconds <= 40.0 * 1.025
    assert len({one.at_seconds for one in scaled}) > 3900, "the copies do not come together"


def test_each_copy_keeps_the_gaps_of_the_trace() -> None:
    trace = [TracedRequest(at, 10, 5, tenant="a") for at in (0.0, 0.5, 7.0, 7.25, 90.0)]
    by_copy: dict[str, list[float]] = {}
    for one in in_rate(trace, 3.0, seeded(4)):
        by_copy.setdefault(one.tenant, []).append(one.at_seconds)
    assert sorted(by_copy) == ["a", "a~1", "a~2"]
    starts = {times[0] for times in by_copy.values()}
    assert len(starts) == 3
    assert 0.0 in starts
    assert max(starts) <= LATEST_START_SECONDS
    for times in by_copy.values():
        assert [at - times[0] for at in times] == pytest.approx([0.0, 0.5, 7.0, 7.25, 90.0])


def test_a_copy_has_tenants_sessions_and_prefixes_of_its_own_but_for_the_first_block() -> None:
    trace = [TracedRequest(0.0, 1500, 5, tenant="a", session="s", blocks=PromptBlocks((7, 8, 9), 512))]
    first, second = sorted(in_rate(trace, 2.0, seeded()), key=lambda one: one.tenant)
    assert first == trace[0]
    assert (second.tenant, second.session) == ("a~1", "s~1")
    assert second.blocks is not None
    assert second.blocks.ids[0] == 7
    assert not set(second.blocks.ids[1:]) & {7, 8, 9}


def test_copies_share_no_prefix_but_the_first_block_in_a_real_trace(data_dir: Path) -> None:
    trace = read_file(read_mooncake, data_dir / "traces" / "mooncake_conversation_first40min.jsonl.gz")[:1000]
    ids: dict[str, set[int]] = {}
    for one in in_rate(trace, 3.0, seeded()):
        assert one.blocks is not None
        assert one.session is not None
        ids.setdefault(one.session.partition("~")[2], set()).update(one.blocks.ids)
    assert ids.keys() == {"", "1", "2"}
    assert ids[""] & ids["1"] == ids["1"] & ids["2"] == ids[""] & ids["2"] == {0}
    assert len({len(of_copy) for of_copy in ids.values()}) == 1


def test_traces_that_tell_no_tenant_stay_so() -> None:
    assert {one.tenant for one in in_rate(steady(5), 3.0, seeded())} == {"trace"}


@pytest.mark.parametrize(
    ("name", "original"), [("a~1", "a"), ("a~12", "a"), ("a", "a"), ("a~b", "a~b"), ("a~1~2", "a~1")]
)
def test_a_copy_leads_back_to_its_tenant(name: str, original: str) -> None:
    assert original_tenant(name) == original


def test_thinning_keeps_or_drops_a_conversation_whole() -> None:
    trace = [TracedRequest(float(turn), 10, 5, session=f"s{number}") for turn in range(4) for number in range(2000)]
    turns = Counter(one.session for one in in_rate(trace, 0.3, seeded(5)))
    assert set(turns.values()) == {4}
    assert len(turns) == pytest.approx(600, abs=4 * (2000 * 0.3 * 0.7) ** 0.5)


def test_thinning_is_even_over_the_trace() -> None:
    kept = [one.input_tokens for one in in_rate(steady(20_000, 0.1), 0.5, seeded(6))]
    for part in range(10):
        inside = sum(part * 2000 < number <= (part + 1) * 2000 for number in kept)
        assert inside == pytest.approx(1000, abs=4 * 22.4)
    repeats = sum(later - earlier == 1 for earlier, later in pairwise(kept))
    assert repeats / len(kept) == pytest.approx(0.5, abs=0.02), "neighbours are drawn independently"


def test_twenty_runs_of_one_seed_are_one_and_another_seed_is_another(conversation: list[TracedRequest]) -> None:
    part = conversation[:500]
    runs = [list(in_rate(part, 2.5, seeded(7))) for _ in range(20)]
    assert all(run == runs[0] for run in runs)
    assert list(in_rate(part, 2.5, seeded(8))) != runs[0]


def test_only_the_copies_of_a_minute_are_held() -> None:
    taken = 0

    def source() -> Iterator[TracedRequest]:
        nonlocal taken
        for request in steady(5000):
            taken += 1
            yield request

    yielded = most_held = 0
    for _ in in_rate(source(), 4.0, seeded(9)):
        yielded += 1
        most_held = max(most_held, 4 * taken - yielded)
    assert yielded == 20_000
    assert most_held <= 4 * (LATEST_START_SECONDS + 2)


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf"), 1001.0])
def test_a_factor_out_of_range_is_refused_at_once(factor: float) -> None:
    with pytest.raises(ValueError, match="more than 0 and at most 1000"):
        in_rate([], factor, seeded())
    with pytest.raises(ValueError, match="more than 0 and at most 1000"):
        in_time([], factor)
