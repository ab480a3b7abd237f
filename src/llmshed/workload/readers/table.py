"""Comma-separated traces: a header, then a request a line."""

import csv
from collections.abc import Iterable, Iterator

from llmshed.errors import TraceError
from llmshed.workload.readers.lines import numbered_lines, shown


def table_rows(
    chunks: Iterable[bytes], needed: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Iterator[tuple[int, list[str]]]:
    """Yield each row's line number and its fields, those of `needed` first, then those of `optional`.

    Columns stand in any order; others are passed over. An optional column that is not there gives empty fields.

    Raises:
        TraceError: there is no header, a needed column is missing, a column of ours stands there twice, or a row has
            not as many fields as the header.
    """
    lines = numbered_lines(chunks)
    first = next(lines, None)
    if first is None:
        raise TraceError(f"the trace is empty; a header with {', '.join(needed)} comes first")
    header = [column.strip() for column in split_row(first[1], first[0])]
    places = _places(header, needed, optional, first[0])
    for line, text in lines:
        fields = split_row(text, line)
        if len(fields) != len(header):
            raise TraceError(f"{len(fields)} fields; the header has {len(header)}: {shown(text)}", line)
        yield line, ["" if place is None else fields[place] for place in places]


def split_row(text: str, line: int) -> list[str]:
    """Return the fields of one line; a quoted field ends on the line that it starts on.

    Raises:
        TraceError: the quoting is broken.
    """
    if '"' not in text:
        return text.split(",")
    try:
        return next(csv.reader([text], strict=True))
    except csv.Error as error:
        raise TraceError(f"not comma-separated ({error}): {shown(text)}", line) from None


def _places(header: list[str], needed: tuple[str, ...], optional: tuple[str, ...], line: int) -> list[int | None]:
    missing = [column for column in needed if column not in header]
    if missing:
        raise TraceError(f"no column {', '.join(missing)} in the header {shown(','.join(header))}", line)
    twice = [column for column in needed + optional if header.count(column) > 1]
    if twice:
        raise TraceError(f"the header has {', '.join(twice)} more than once", line)
    return [header.index(column) if column in header else None for column in needed + optional]
