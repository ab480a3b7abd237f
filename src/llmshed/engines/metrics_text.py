"""Single values out of an engine's `/metrics`, whatever is on that page.

A real page of TGI is 100 kB, and parsing all of it would hold the event loop for tens of milliseconds. So only lines
that begin with a wanted name are parsed: few, and none of them long, which bounds the time for any page.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

MOST_LINES = 64
"""Lines of the wanted names that are read; a page with more of them is no engine's."""
MOST_LINE_BYTES = 4096


class Series(NamedTuple):
    """One line of the page."""

    name: str
    labels: Mapping[str, str]
    value: float


def plain_values(body: bytes, names: Collection[str]) -> dict[str, float]:
    """Return the values of series without labels, by name; NaN and infinities are returned as they stand there.

    Left out is what is not there, cannot be read, or is told twice: of two answers neither is believed.
    """
    told: dict[str, list[float]] = {}
    for series in labelled_values(body, names):
        if not series.labels:
            told.setdefault(series.name, []).append(series.value)
    return {name: values[0] for name, values in told.items() if len(values) == 1}


def labelled_values(body: bytes, names: Collection[str], most_lines: int = MOST_LINES) -> list[Series]:
    """Return all series of these names, whatever their labels; none of a page with more than `most_lines` of them."""
    found: list[Series] = []
    for count, line in enumerate(_lines(body, names)):
        if count >= most_lines:
            return []
        found.extend(series for series in _series(line) if series.name in names)
    return found


def _lines(body: bytes, names: Collection[str]) -> Iterator[bytes]:
    """Yield the lines that begin with one of the names, found without splitting the page."""
    page = b"\n" + body + b"\n"
    for name in names:
        begin = b"\n" + name.encode()
        at = page.find(begin)
        while at >= 0:
            end = page.index(b"\n", at + 1)
            yield page[at + 1 : end]
            at = page.find(begin, end)


def _series(line: bytes) -> list[Series]:
    """Read one line; one that is too long or cannot be read holds nothing."""
    if len(line) > MOST_LINE_BYTES:
        return []
    try:
        families = list(text_string_to_metric_families(line.decode()))
    except (ValueError, IndexError, KeyError, TypeError):  # what the parser raises at text that is not its format
        return []
    return [Series(s.name, s.labels, float(s.value)) for family in families for s in family.samples]
