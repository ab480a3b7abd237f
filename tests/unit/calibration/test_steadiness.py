from random import Random

from llmshed.calibration.steadiness import has_settled


def test_a_short_row_says_nothing() -> None:
    assert not has_settled([1.0] * 15, 0.1)
    assert has_settled([1.0] * 16, 0.1)


def test_noise_about_a_mean_has_settled_and_a_drift_has_not() -> None:
    rng = Random(3)  # noqa: S311 - no secret
    noise = [rng.gauss(0, 0.05) for _ in range(160)]
    assert has_settled([0.5 + one for one in noise], 0.1)
    assert not has_settled([one + place / 160 for place, one in enumerate(noise)], 0.1)


def test_a_drift_within_the_tolerance_does_not_matter() -> None:
    assert has_settled([place / 1600 for place in range(160)], 0.1)
    assert not has_settled([place / 1600 for place in range(160)], 0.01)
