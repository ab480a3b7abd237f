import pytest

from llmshed.workload.asks import Ask, Outcome, Sample

ASK = Ask("a", input_tokens=300, ceiling_tokens=100, runs_to_ceiling=True, lane="interactive")


def sample(*token_times: float, output_tokens: int) -> Sample:
    return Sample(ASK, 10.0, 10.5, token_times, 20.0, Outcome.FINISHED, 200, output_tokens)


def test_a_reservation_is_input_and_ceiling() -> None:
    assert ASK.reserved_tokens == 400


def test_times_run_from_the_planned_instant_and_not_from_the_sending() -> None:
    told = sample(12.0, 12.5, 13.5, output_tokens=3)
    assert told.ttft_seconds == pytest.approx(2.0)
    assert told.end_to_end_seconds == pytest.approx(10.0)
    assert told.itl_seconds == pytest.approx((0.5, 1.0))
    assert told.tpot_seconds == pytest.approx(0.75)


def test_an_event_with_several_tokens_counts_for_all_of_them() -> None:
    assert sample(12.0, 15.0, output_tokens=7).tpot_seconds == pytest.approx(0.5)


@pytest.mark.parametrize(("times", "tokens"), [((), 0), ((12.0,), 1), ((12.0,), 5), ((12.0, 13.0), 1)])
def test_without_two_tokens_there_is_no_time_per_token(times: tuple[float, ...], tokens: int) -> None:
    assert sample(*times, output_tokens=tokens).tpot_seconds is None


def test_without_a_token_there_is_no_time_to_the_first() -> None:
    nothing = sample(output_tokens=0)
    assert nothing.ttft_seconds is None
    assert nothing.itl_seconds == ()
