"""What Prometheus answers, as numbers: a value may be missing, and `NaN` comes as a text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one series at the steps at which it had any.

    Args:
        labels: its labels, the metric's name included where the query kept it.
        times: seconds since the epoch, ascending.
        values: as many; may be infinite or NaN.
    """

    labels: Mapping[str, str]
    times: tuple[float, ...]
    values: tuple[float, ...]


def series_of(result: Any) -> tuple[Series, ...]:
    """Read the result of a query: a vector's samples become series of one value, a scalar one without labels.

    Raises:
        ValueError: it has another form.
    """
    if isinstance(result, list) and len(result) == 2 and isinstance(result[1], str):  # a scalar: [time, "value"]
        return (_series({}, [result]),)
    if not isinstance(result, list) or not all(isinstance(one, Mapping) for one in result):
        raise ValueError("a list of series was expected")
    return tuple(_one(one) for one in result)


def _one(told: Mapping[str, Any]) -> Series:
    labels = told.get("metric")
    points = told.get("values", [told["value"]] if "value" in told else None)
    if not isinstance(labels, Mapping) or not isinstance(points, list):
        raise ValueError("a series without labels or values was told")  # noqa: TRY004 - a form, not a caller's type
    return _series({str(name): str(value) for name, value in labels.items()}, points)


def _series(labels: Mapping[str, str], points: Sequence[Any]) -> Series:
    try:
        pairs = [(float(at), float(value)) for at, value in points]
    except (TypeError, ValueError) as error:
        raise ValueError("a value is no pair of time and number") from error
    return Series(labels, tuple(at for at, _ in pairs), tuple(value for _, value in pairs))
