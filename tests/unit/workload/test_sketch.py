"""The sketch against sorted lists."""

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.workload.sketch import LARGEST, QuantileSketch

SHARES = (0.0, 0.01, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999, 1.0)


def sketch_of(values: list[float], relative_error: float = 0.01) -> QuantileSketch:
    sketch = QuantileSketch(relative_error)
    for value in values:
        sketch.add(value)
    return sketch


def ranked(values: list[float], share: float) -> float:
    return sorted(values)[math.floor(share * (len(values) - 1))]


@pytest.mark.parametrize("relative_error", [0.001, 0.01, 0.1])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.uniform(0, 10_000),
        lambda rng: rng.lognormvariate(5, 2),
        lambda rng: rng.paretovariate(1.1),
        lambda rng: float(rng.randint(1, 8192)),
        lambda rng: rng.choice([0.0, 1e-6, 3.0]),
    ],
    ids=["uniform", "lognormal", "pareto", "lengths", "few values"],
)
def test_every_quantile_is_within_the_stated_error(
    draw: Callable[[random.Random], float], relative_error: float
) -> None:
    rng = random.Random(3)  # noqa: S311 - one seed, one list
    values = [draw(rng) for _ in range(5000)]
    told = sketch_of(values, relative_error).quantiles(SHARES)
    for share, value in zip(SHARES, told, strict=True):
        assert value == pytest.approx(ranked(values, share), rel=relative_error * (1 + 1e-9), abs=1e-9)


@given(st.lists(st.floats(0, LARGEST), min_size=1), st.floats(0, 1))
def test_any_list_at_any_share(values: list[float], share: float) -> None:
    told = sketch_of(values).quantile(share)
    assert told == pytest.approx(ranked(values, share), rel=0.01 * (1 + 1e-9), abs=1e-9)


@given(st.lists(st.floats(0, 1e9)), st.lists(st.floats(0, 1e9)))
def test_parts_merge_into_the_whole(first: list[float], second: list[float]) -> None:
    merged, whole = sketch_of(first), sketch_of(first + second)
    merged.merge(sketch_of(second))
    assert merged.quantiles(SHARES) == whole.quantiles(SHARES)
    assert (merged.count, merged.least, merged.most) == (whole.count, whole.least, whole.most)
    assert merged.mean() == pytest.approx(whole.mean())


def test_a_sketch_merged_with_itself_counts_twice() -> None:
    sketch = sketch_of([1.0, 2.0, 3.0])
    sketch.merge(sketch)
    assert (sketch.count, sketch.mean(), sketch.quantile(1.0)) == (6, 2.0, 3.0)


def test_an_empty_sketch_tells_nothing() -> None:
    sketch = QuantileSketch()
    assert sketch.quantiles((0.5, 1.0)) == (None, None)
    assert (sketch.mean(), sketch.least, sketch.most, sketch.count) == (None, None, None, 0)


def test_ranks_and_shares_are_those_of_the_sorted_list() -> None:
    values = [float(value) for value in (0, 0, 1, 2, 4, 8, 16, 16, 1000)]
    sketch = sketch_of(values)
    assert [sketch.at_rank(rank) for rank in range(9)] == pytest.approx(values, rel=0.01)
    assert [sketch.share_up_to(value) for value in (-1, 0, 1.1, 3, 17, 999, 2000, math.inf)] == pytest.approx(
        [0, 2 / 9, 3 / 9, 4 / 9, 8 / 9, 8 / 9, 1, 1]
    )
    assert QuantileSketch().share_up_to(5.0) == 0.0
    with pytest.raises(ValueError, match="ranks from 0 to 8"):
        sketch.at_rank(9)


def test_a_value_counts_as_often_as_told() -> None:
    sketch = QuantileSketch()
    sketch.add(10.0, times=99)
    sketch.add(1000.0)
    assert sketch.count == 100
    assert sketch.mean() == pytest.approx((990 + 1000) / 100)
    assert sketch.quantile(0.9) == pytest.approx(10.0, rel=0.01)
    assert sketch.quantile(1.0) == 1000.0


def test_memory_is_bounded_over_the_whole_range() -> None:
    sketch = QuantileSketch()
    value = 1e-9
    while value < LARGEST:
        sketch.add(value)
        value *= 1.001
    assert sketch.count > 48_000
    assert len(sketch._buckets) <= 2421


@pytest.mark.parametrize("value", [-1.0, -1e-12, math.nan, math.inf, -math.inf, LARGEST * 1.01])
def test_what_is_no_count_or_duration_is_refused_and_changes_nothing(value: float) -> None:
    sketch = sketch_of([1.0])
    with pytest.raises(ValueError, match="from 0 to 1e\\+12"):
        sketch.add(value)
    assert (sketch.count, sketch.most) == (1, 1.0)


def test_no_value_counts_less_than_once() -> None:
    with pytest.raises(ValueError, match="0 times"):
        QuantileSketch().add(1.0, times=0)


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_a_share_lies_between_0_and_1(share: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        sketch_of([1.0]).quantile(share)


@pytest.mark.parametrize("relative_error", [0.0, 1.0, -0.1, math.nan])
def test_a_relative_error_lies_between_0_and_1(relative_error: float) -> None:
    with pytest.raises(ValueError, match="relative error"):
        QuantileSketch(relative_error)


def test_sketches_of_other_errors_do_not_merge() -> None:
    with pytest.raises(ValueError, match="do not merge"):
        QuantileSketch(0.01).merge(QuantileSketch(0.02))
