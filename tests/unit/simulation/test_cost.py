"""The step-time model against sums worked out by hand."""

import pytest

from llmshed.simulation.cost import StepTimes, StepWork

TIMES = StepTimes(
    step_seconds=0.01,
    seconds_per_prefill_token=0.000_1,
    seconds_per_decoding_sequence=0.000_2,
    weights_seconds=0.02,
    seconds_per_attention_pair=1e-9,
    seconds_per_resident_token=1e-6,
    seconds_per_sequence=0.000_3,
    seconds_per_linked_token=0.000_01,
)


@pytest.mark.parametrize(
    ("work", "seconds"),
    [
        (StepWork(), 0.01 + 0.02),
        (StepWork(prefill_tokens=50), 0.03 + 0.005 + 0.0005),
        (StepWork(prefill_tokens=4096, decoding_sequences=7), 0.03 + 0.4096 + 0.0014 + 0.0021 + 0.04103),
        (StepWork(attention_pairs=10_000_000), 0.03 + 0.01),
        (StepWork(decoding_sequences=8, resident_tokens=16_000), 0.03 + 0.0016 + 0.0024 + 0.016 + 0.00008),
    ],
)
def test_a_step_takes_the_sum_of_its_terms(work: StepWork, seconds: float) -> None:
    assert TIMES.seconds(work) == pytest.approx(seconds)


def test_a_stretch_of_decodes_grows_by_one_resident_token_for_each_sequence() -> None:
    first = TIMES.seconds(StepWork(decoding_sequences=5, resident_tokens=1_000))
    second = TIMES.seconds(StepWork(decoding_sequences=5, resident_tokens=1_005))
    assert second - first == pytest.approx(TIMES.growth_seconds(5))


def test_the_times_that_feel_like_one_small_gpu_know_neither_weights_nor_context() -> None:
    times = StepTimes()
    assert times.seconds(StepWork(prefill_tokens=8000, attention_pairs=10**9)) == pytest.approx(0.025 + 1)
    assert times.seconds(StepWork(decoding_sequences=10, resident_tokens=10**6)) == pytest.approx(0.025 + 0.001)


@pytest.mark.parametrize(
    "name",
    [
        "seconds_per_prefill_token",
        "seconds_per_decoding_sequence",
        "weights_seconds",
        "seconds_per_attention_pair",
        "seconds_per_resident_token",
        "seconds_per_sequence",
        "seconds_per_linked_token",
    ],
)
@pytest.mark.parametrize("value", [-1e-9, 10.1, float("nan"), float("inf")])
def test_a_coefficient_outside_its_range_is_named(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is .*accepted are 0 to 10"):
        StepTimes(**{name: value})


@pytest.mark.parametrize("value", [0, -1, 3601, float("nan")])
def test_no_step_takes_no_time(value: float) -> None:
    with pytest.raises(ValueError, match=r"step_seconds is .*accepted are 1e-05 to 3600"):
        StepTimes(step_seconds=value)
