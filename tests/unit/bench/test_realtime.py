"""The bench in real time: its plan, what it calls good, and its table."""

from dataclasses import replace

import pytest
import realtime
import realtime_traffic
from realtime import Row, is_good, table
from realtime_traffic import Came, Planned, plan

SHORT = Planned(0.0, False, 600, 256)  # noqa: FBT003 - a field's value
SERVED = Came(SHORT, 200, "", 0.4, 0.5, 5.5, 101, whole=True)
REFUSED = Came(SHORT, 429, "queue_full", 0.02, None, 0.02, 0, whole=False)


def test_a_plan_is_seeded_in_order_and_as_dense_as_its_rate() -> None:
    requests = plan(10.0, 1000.0, 3)
    assert requests == plan(10.0, 1000.0, 3)
    assert [one.at_seconds for one in requests] == sorted(one.at_seconds for one in requests)
    assert len(requests) == pytest.approx(10_000, rel=0.05)
    bulk = sum(one.bulk for one in requests) / len(requests)
    assert bulk == pytest.approx(1 - realtime_traffic.INTERACTIVE_SHARE, abs=0.02)
    assert all(64 <= one.input_tokens <= 2400 for one in requests)


@pytest.mark.parametrize(
    ("came", "good"),
    [
        (SERVED, True),
        (replace(SERVED, first_token_seconds=2.01), False),
        (replace(SERVED, ended_seconds=10.6), False),  # 0.101 s a token
        (replace(SERVED, whole=False), False),
        (replace(SERVED, planned=replace(SHORT, bulk=True), first_token_seconds=100.0, ended_seconds=101.0), True),
        (REFUSED, False),
    ],
)
def test_good_is_what_was_answered_in_full_and_in_time(came: Came, *, good: bool) -> None:
    assert is_good(came) is good


def test_the_table_tells_shares_of_its_first_row_and_why_others_were_refused() -> None:
    first = Row("1x", 1.0, 10.0, [SERVED] * 10, 0.5, 0.25)
    second = Row("2x", 2.0, 10.0, [SERVED] * 9 + [REFUSED] * 11, 0.6, 0.3)
    assert first.good_tokens_per_second == 701.0
    _, _, one, two = table([first, second])
    assert "| 701 | 100 % |" in one
    assert "none" in one
    assert "| 631 | 90 % |" in two
    assert "| queue_full 11 | 20.00 / 20.00 ms |" in two
    assert two.endswith("60 % / 30 % |")
    assert realtime.TTFT_SECONDS[False] == 2.0
