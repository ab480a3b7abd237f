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
)


@pytest.mark.parametrize(
    ("work", "seconds"),
    [
        (StepWork(), 0.01 + 0.02),
        # 0.0052 of arithmetic takes less than reading the weights.
        (StepWork(prefill_tokens=50, decoding_sequences=1), 0.01 + 0.02),
        (StepWork(prefill_tokens=4096, decoding_sequences=7), 0.01 + 0.4096 + 0.0014),
        (StepWork(attention_pairs=10_000_000), 0.01 + 0.02 + 0.01),
        (StepWork(decoding_sequences=8, resident_tokens=16_000), 0.01 + 0.02 + 0.016),
    ],
)
def test_a_step_takes_the_sum_of_its_terms_with_the_weights_as_floor(work: StepWork, seconds: float) -> None:
    assert TIMES.seconds(work) == pytest.approx(seconds)


def test_a_stretch_of_decodes_grows_by_one_resident_token_for_each_sequence() -> None:
    first = TIMES.seconds(StepWork(decoding_sequences=5, resident_tokens=1_000))
    second = TIMES.seconds(StepWork(decoding_sequences=5, resident_tokens=1_005))
    assert second - first == pytest.approx(TIMES.growth_seconds(5))


@pytest.mark.parametrize(
    "name",
    ["seconds_per_prefill_token", "weights_seconds", "seconds_per_attention_pair", "seconds_per_resident_token"],
)
@pytest.mark.parametrize("value", [-1e-9, 10.1, float("nan"), float("inf")])
def test_a_coefficient_outside_its_range_is_named(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is .*accepted are 0 to 10"):
        StepTimes(**{name: value})
