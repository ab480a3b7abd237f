"""The service rate: a mean of the last windows under pressure that compare with now."""

from llmshed.ladder.rates import ServiceRate


def test_it_is_unknown_before_the_first_window_under_pressure() -> None:
    assert ServiceRate().tokens_per_second(0) is None


def test_it_is_the_mean_of_the_last_eight_windows() -> None:
    rate = ServiceRate()
    for tokens_per_second in (1e6, *range(100, 900, 100)):
        rate.saw(tokens_per_second, 0)

    assert rate.tokens_per_second(0) == 450  # (100 + ... + 800) / 8: the million is the ninth from the end


def test_what_fewer_replicas_served_does_not_count_once_they_are_back() -> None:
    rate = ServiceRate()
    rate.saw(1000.0, 0)
    rate.saw(400.0, 1)

    assert rate.tokens_per_second(0) == 1000
    assert rate.tokens_per_second(1) == 700


def test_all_of_it_can_be_of_another_time() -> None:
    rate = ServiceRate()
    rate.saw(400.0, 1)
    assert rate.tokens_per_second(0) is None
    rate.forget()
    assert rate.tokens_per_second(1) is None
