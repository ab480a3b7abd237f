"""What Prometheus answers becomes numbers, or is refused whole."""

import math

import pytest

from llmshed.prometheus.answers import series_of


def test_a_matrix_keeps_its_labels_and_gaps() -> None:
    (one,) = series_of([{"metric": {"lane": "bulk"}, "values": [[10, "1"], [20, "NaN"], [40.5, "+Inf"]]}])
    assert one.labels == {"lane": "bulk"}
    assert one.times == (10.0, 20.0, 40.5)
    assert (one.values[0], one.values[2]) == (1.0, math.inf)
    assert math.isnan(one.values[1])


def test_a_vector_is_one_value_a_series_and_a_scalar_one_without_labels() -> None:
    first, second = series_of([{"metric": {"a": "1"}, "value": [5, "2"]}, {"metric": {}, "value": [5, "3"]}])
    assert (first.times, first.values, second.values) == ((5.0,), (2.0,), (3.0,))
    (scalar,) = series_of([7, "4.5"])
    assert (scalar.labels, scalar.values) == ({}, (4.5,))
    assert series_of([]) == ()


@pytest.mark.parametrize(
    "told",
    [None, "no", {"metric": {}}, ["a", "b"], [{}], [{"metric": {}}], [{"metric": [], "values": []}],
     [{"metric": {}, "values": [["a", "b"]]}], [{"metric": {}, "values": [[1, 2, 3]]}], [{"metric": {}, "values": 5}]],
)  # fmt: skip
def test_another_form_is_refused(told: object) -> None:
    with pytest.raises(ValueError, match=r"expected|told|pair"):
        series_of(told)
