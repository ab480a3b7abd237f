"""What was measured: single figures, one of each round, and how they are kept."""

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from statistics import median

ABSENT = "absent"
"""Measure under which is kept why something was not measured: its sentence stands for the name of a figure."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one round.

    Args:
        measure: what was done, as in `stream`.
        proxy: to whom.
        round: number of the round, from 1.
        name: what the value is, with its unit.
        value: the value.
    """

    measure: str
    proxy: str
    round: int
    name: str
    value: float


class Figures:
    """All figures of a run."""

    def __init__(self, figures: Iterable[Figure] = ()) -> None:
        """Begin with some."""
        self.all = list(figures)

    @property
    def absent(self) -> dict[str, str]:
        """Return why what should have been measured was not, by its name."""
        return {one.proxy: one.name for one in self.all if one.measure == ABSENT}

    def miss(self, what: str, why: str) -> None:
        """Note why a proxy, or a whole measure, is not there."""
        self.all.append(Figure(ABSENT, what, 0, why, 0.0))

    def note(self, measure: str, proxy: str, number: int, **values: float | None) -> None:
        """Take figures of one round; None stands for nothing seen, and is left out."""
        self.all += [
            Figure(measure, proxy, number, name, round(value, 4)) for name, value in values.items() if value is not None
        ]

    def of(self, measure: str, proxy: str, name: str) -> dict[int, float]:
        """Return one figure by round."""
        return {
            one.round: one.value for one in self.all if (one.measure, one.proxy, one.name) == (measure, proxy, name)
        }

    def middle(self, measure: str, proxy: str, name: str) -> float | None:
        """Return the median of the rounds; None when there were none."""
        values = self.of(measure, proxy, name).values()
        return median(values) if values else None

    def ratio(self, measure: str, proxy: str, beside: str, name: str) -> float | None:
        """Return the median of one proxy's figure beside another's of the same round; None without such a round."""
        ours, theirs = self.of(measure, proxy, name), self.of(measure, beside, name)
        ratios = [ours[number] / theirs[number] for number in ours.keys() & theirs.keys() if theirs[number]]
        return median(ratios) if ratios else None

    def proxies(self, measure: str) -> list[str]:
        """Return who was measured, in order."""
        return list(dict.fromkeys(one.proxy for one in self.all if one.measure == measure))


def to_csv(figures: Figures) -> str:
    """Return figures as text with a head line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(Figure))
    writer.writerows(astuple(one) for one in figures.all)
    return text.getvalue()


def from_csv(text: str) -> Figures:
    """Return the figures of `to_csv`."""
    return Figures(
        Figure(row["measure"], row["proxy"], int(row["round"]), row["name"], float(row["value"]))
        for row in csv.DictReader(text.splitlines())
    )
