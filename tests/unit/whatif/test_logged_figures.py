"""What a log says of each lane, counted by hand, and that a run is counted alike."""

import pytest

from fakes.logs import logged
from fakes.whatif_runs import part, report
from llmshed.admission.request import Lane
from llmshed.whatif.logged_figures import LaneFigures, logged_figures, simulated_figures


def test_each_lane_is_counted_for_itself() -> None:
    tries = [
        logged(0, output_tokens=20),
        logged(1, "refused"),
        logged(2, "refused", lane=Lane.BULK),
        logged(3, "failed", status=502, output_tokens=None),
        logged(9.9, output_tokens=20),
        logged(10, "evicted", lane=Lane.BULK),
    ]
    told = logged_figures(tries, 10.0)
    interactive = told.lanes[Lane.INTERACTIVE]
    assert (interactive.tries, interactive.refused_share, interactive.first_tokens) == (4, 0.25, 2)
    assert interactive.ttft_p95_seconds == pytest.approx(0.05)
    assert interactive.output_tokens_per_second == pytest.approx(2.2)
    assert told.lanes[Lane.BULK] == LaneFigures(2, 1.0, 0, None, 0.0)
    assert list(told.lanes) == [Lane.INTERACTIVE, Lane.BULK]


def test_output_counts_up_to_the_last_arrival() -> None:
    running = logged(0, output_tokens=101, ttft_seconds=1.0, tpot_seconds=0.1, total_seconds=11.0)
    told = logged_figures([running, logged(6, "refused")], 6.0)
    assert told.lanes[Lane.INTERACTIVE].output_tokens_per_second == pytest.approx(51 / 6)


def test_first_tokens_are_those_of_finished_answers_and_the_ends_of_those_in_one_piece() -> None:
    tries = [logged(at, ttft_seconds=0.001 * (at + 1)) for at in range(100)]
    tries += [logged(100, streamed=False, ttft_seconds=None, total_seconds=8.0), logged(101, "failed", status=502)]
    told = logged_figures(tries, 101.0).lanes[Lane.INTERACTIVE]
    assert told.first_tokens == 101
    assert told.ttft_p95_seconds == pytest.approx(0.096, rel=0.01)


def test_only_the_part_that_is_asked_for_counts() -> None:
    tries = [logged(at, config_version=f"c{at // 4}", replica=f"r{at // 6}") for at in range(10)]
    told = logged_figures(tries, 5.0, 5.0)
    assert told.lanes[Lane.INTERACTIVE].tries == 6
    assert told.config_versions == {"c0": 4, "c1": 2}
    assert told.replicas == {"r0"}


def test_a_retry_after_the_last_new_request_counts_as_a_try_and_its_output_no_more() -> None:
    told = logged_figures([logged(0), logged(5, "refused"), logged(20, output_tokens=50)], 5.0)
    interactive = told.lanes[Lane.INTERACTIVE]
    assert (interactive.tries, interactive.first_tokens) == (3, 2)
    assert interactive.output_tokens_per_second == pytest.approx(4.0)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_log_without_duration_has_no_rates(seconds: float) -> None:
    with pytest.raises(ValueError, match="more than 0 s"):
        logged_figures([logged(0)], seconds)


def test_a_run_counts_every_try_and_what_the_engine_had_no_room_for() -> None:
    served = part(
        700, {"token_budget_exhausted": 250, "engine_overloaded": 50, "engine_failed": 100}, arrived=1000, retries=200
    )
    told = simulated_figures(report(lanes={"bulk": served}))
    assert told == {
        Lane.BULK: LaneFigures(
            tries=1200,
            refused_share=300 / 1200,
            first_tokens=served.try_ttft_seconds.count,
            ttft_p95_seconds=served.try_ttft_seconds.p95,
            output_tokens_per_second=350.0,
        )
    }
