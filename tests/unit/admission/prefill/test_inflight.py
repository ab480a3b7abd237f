"""Prompts in flight by hand, at a measured rate of 1,000 tokens/s."""

import pytest

from llmshed.admission.prefill.inflight import InFlight, Prompt
from llmshed.admission.prefill.rate import MeasuredRate
from llmshed.admission.request import Lane


def flight(most_tokens: float | None, *prompts: Prompt) -> InFlight:
    made = InFlight(most_tokens, MeasuredRate(1_000.0))
    for prompt in prompts:
        made.add(prompt)
    return made


def stream(key: int, tokens: int, at: float = 0.0) -> Prompt:
    return Prompt(key, Lane.INTERACTIVE, tokens, at, streamed=True, output_ceiling_tokens=10)


def whole(key: int, tokens: int, at: float = 0.0) -> Prompt:
    return Prompt(key, Lane.INTERACTIVE, tokens, at, streamed=False, output_ceiling_tokens=10)


class Rates(MeasuredRate):
    """Remembers its samples and stays at 1,000 tokens/s."""

    def __init__(self) -> None:
        super().__init__(1_000.0)
        self.samples: list[tuple[int, float]] = []

    def learn(self, tokens: int, seconds: float, inflight_tokens: int) -> None:
        assert inflight_tokens >= tokens
        self.samples.append((tokens, seconds))


def learning(*prompts: Prompt, most_tokens: float | None = 1_000) -> tuple[InFlight, Rates]:
    rates = Rates()
    here = InFlight(most_tokens, rates)
    for prompt in prompts:
        here.add(prompt)
    return here, rates


def test_a_prompt_has_room_up_to_the_bound_or_alone() -> None:
    assert flight(1_000).fits(9_000)
    assert flight(1_000, stream(1, 600)).fits(400)
    assert not flight(1_000, stream(1, 600)).fits(401)
    assert flight(None, stream(1, 600)).fits(9_000)


def test_it_is_overfull_only_beyond_the_bound() -> None:
    assert not flight(1_000, stream(1, 1_000)).overfull
    assert flight(1_000, stream(1, 1_001)).overfull
    assert not flight(None, stream(1, 9_000)).overfull


def test_a_prompt_leaves_with_its_first_token_or_its_end_and_once() -> None:
    here = flight(1_000, stream(1, 600), stream(2, 300))
    assert [p.key for p in here.first_token(2, 0.5)] == [2]
    assert here.first_token(2, 0.6) == []
    assert here.tokens == 600
    here.end(1, 0.7)
    here.end(1, 0.8)
    assert (here.tokens, len(here), here.check()) == (0, 0, [])


def test_who_leaves_from_behind_takes_nothing_off_the_time_that_the_engine_worked_on_the_head() -> None:
    here = flight(None, stream(1, 3_000), stream(2, 500))
    here.end(2, 2.0)
    assert here.busy_seconds(2.0) == pytest.approx(1.0)


def test_a_request_is_not_in_flight_twice() -> None:
    with pytest.raises(ValueError, match="request 1 is already in flight"):
        flight(None, stream(1, 5), stream(1, 5))


def test_unstreamed_prompts_leave_one_after_the_other_as_predicted() -> None:
    here = flight(1_000, whole(1, 500), whole(2, 300), whole(3, 100, at=5.0))
    assert here.next_predicted() == 0.5
    assert [(p.key, end) for p, end in here.take_predicted(0.9)] == [(1, 0.5), (2, 0.8)]
    assert here.next_predicted() == pytest.approx(5.1)


def test_an_unstreamed_prompt_behind_a_stream_waits_for_its_first_token() -> None:
    here, _ = learning(stream(1, 500), whole(2, 300))
    assert list(here.take_predicted(60.0)) == []
    here.first_token(1, 60.0)
    ((prompt, end),) = here.take_predicted(61.0)
    assert prompt.key == 2
    assert end == pytest.approx(60.3)


def test_a_first_token_shows_that_unstreamed_prompts_before_it_are_over() -> None:
    here = flight(9_000, whole(1, 5_000), whole(2, 3_000), stream(3, 100), whole(4, 100))
    assert [p.key for p in here.first_token(3, 0.4)] == [1, 2, 3]
    assert here.tokens == 100


def test_room_by_predicted_ends() -> None:
    here = flight(1_000, whole(1, 500), whole(2, 400), stream(3, 100))
    assert here.ready_at(400) == pytest.approx(0.5)
    assert here.ready_at(900) == pytest.approx(0.9)
    assert here.ready_at(950) is None
    assert flight(1_000, whole(1, 500), whole(2, 400)).ready_at(9_000) == pytest.approx(0.9)


def test_the_wait_behind_others_counts_what_must_leave_and_what_the_head_has_done() -> None:
    here = flight(1_000, stream(1, 600), stream(2, 200))
    assert here.seconds_until(0, 200, 0.0) == 0
    assert here.seconds_until(0, 500, 0.0) == pytest.approx(0.3)
    assert here.seconds_until(400, 500, 0.0) == pytest.approx(0.7)
    assert here.seconds_until(400, 500, 0.25) == pytest.approx(0.45)
    assert here.seconds_until(400, 500, 9.0) == pytest.approx(0.1)
    assert here.seconds_until(0, 9_000, 0.0) == pytest.approx(0.8)
    assert flight(None, stream(1, 600)).seconds_until(9_000, 9_000, 0.0) == 0


def test_the_engine_is_busy_with_what_is_left_of_the_prompts() -> None:
    here = flight(1_000, stream(1, 600), stream(2, 200))
    assert [here.busy_seconds(now) for now in (0.0, 0.5, 9.0)] == pytest.approx([0.8, 0.3, 0.2])
    assert flight(None).busy_seconds(0.0) == 0


def test_prompts_behind_each_other_show_the_rate() -> None:
    here, rates = learning(stream(1, 600), stream(2, 200), stream(3, 100))
    for key, at in ((1, 0.5), (2, 0.75), (3, 0.75)):
        here.first_token(key, at)
    assert rates.samples == [(600, 0.5), (200, 0.25), (100, 0.0)]


def test_less_than_a_step_shows_nothing_and_a_busy_period_ends_with_the_last_prompt() -> None:
    here, rates = learning(stream(1, 400))
    here.first_token(1, 1.0)
    here.add(stream(2, 600, at=2.0))
    here.first_token(2, 2.5)
    here.add(stream(3, 400, at=2.6))
    here.first_token(3, 3.0)
    assert rates.samples == [(600, 0.5)]


def test_without_a_bound_a_step_is_assumed() -> None:
    here, rates = learning(stream(1, 2_000), most_tokens=None)
    here.first_token(1, 1.0)
    here.add(stream(2, 1_000, at=1.0))
    here.add(stream(3, 1_048, at=1.0))
    here.first_token(2, 2.0)
    assert rates.samples == [(1_000, 1.0)]


def test_work_that_nobody_saw_ending_blurs_the_next_sample_alone() -> None:
    here, rates = learning(stream(1, 600), whole(2, 50), stream(3, 300), stream(4, 200), stream(5, 80))
    for key, at in ((1, 0.5), (3, 0.9), (4, 1.0)):
        here.first_token(key, at)
    here.end(5, 1.1)
    assert rates.samples == [(600, 0.5), (200, pytest.approx(0.1))]


def test_a_cancelled_prompt_blurs_and_one_that_was_never_read_does_not() -> None:
    here, rates = learning(stream(1, 600), stream(2, 300), stream(3, 200))
    here.end(1, 0.3)
    here.first_token(2, 0.6)
    here.unread(3)
    assert rates.samples == []
    here, rates = learning(stream(1, 600), stream(2, 300))
    assert here.unread(1) == stream(1, 600)
    assert here.unread(1) is None
    here.first_token(2, 0.3)
    assert rates.samples == [(300, 0.3)]


def test_a_dispatch_that_is_told_with_its_first_token_shows_nothing() -> None:
    here, rates = learning(stream(1, 600), stream(2, 300))
    here.add(stream(3, 900, at=0.2))
    here.first_token(3, 0.2)
    here.first_token(1, 0.5)
    here.first_token(2, 0.8)
    assert [tokens for tokens, _ in rates.samples] == [300]
    assert rates.samples[0][1] == pytest.approx(0.3)


def test_check_tells_a_wrong_sum() -> None:
    here = flight(None, stream(1, 5))
    here.tokens = 6
    assert here.check() == ["6 tokens are in flight, the prompts sum to 5"]
