"""Who follows whom: known lags, known ranks, and intervals that cover what they say."""

import math
from random import Random

import pytest

from llmshed.diagnosis.correlation import follows
from llmshed.diagnosis.track import Track

STEPS = 60


def track(values: list[float]) -> Track:
    return Track(0, 15, tuple(values))


def noise(seed: int, steps: int = STEPS) -> list[float]:
    source = Random(seed)  # noqa: S311 - a seeded series, no secret
    return [source.gauss(0, 1) for _ in range(steps)]


def drawn(seed: int = 1) -> Random:
    return Random(seed)  # noqa: S311 - as above


@pytest.mark.parametrize("lag", [0, 2, 5])
def test_the_lag_is_found(lag: int) -> None:
    leading = noise(3)
    found = follows(track(leading), track([0.0] * lag + [math.exp(value) for value in leading]), drawn().randrange)
    assert found is not None
    assert found.lag_steps == lag
    assert found.correlation == pytest.approx(1.0), "ranks do not mind the form"
    assert found.is_sure
    assert found.busy > found.quiet


def test_by_hand() -> None:
    """Ranks 0..3 against 0, 1.5, 1.5, 3, repeated: covariance 4.5 over the root of 5 x 4.5."""
    leading, following = [1.0, 2.0, 3.0, 4.0] * 5, [1.0, 2.0, 2.0, 9.0] * 5
    found = follows(track(leading), track(following), drawn().randrange)
    assert found is not None
    assert found.correlation == pytest.approx(4.5 / math.sqrt(5 * 4.5))


@pytest.mark.parametrize("values", [[1.0] * STEPS, [math.nan] * STEPS, [1.0, 2.0] * 5])
def test_what_does_not_change_or_is_not_there_tells_nothing(values: list[float]) -> None:
    assert follows(track(values), track(noise(1, len(values))), drawn().randrange) is None


def test_gaps_are_left_out_in_pairs() -> None:
    leading = noise(5)
    following = list(leading)
    following[10:20] = [math.nan] * 10
    found = follows(track(leading), track(following), drawn().randrange)
    assert found is not None
    assert found.lag_steps == 0
    assert found.correlation == pytest.approx(1.0)


@pytest.mark.slow
def test_series_that_have_nothing_to_do_with_each_other_are_rarely_sure() -> None:
    """The best of six lags is taken, for which the interval allows."""
    sure = sum(
        found is not None and found.is_sure
        for seed in range(30)
        for found in [follows(track(noise(2 * seed)), track(noise(2 * seed + 1)), drawn(seed).randrange)]
    )
    assert sure <= 3
