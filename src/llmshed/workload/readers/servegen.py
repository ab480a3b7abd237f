"""ServeGen's description of traffic: how often each client sends in each window, and how long its requests are.

Source: alibaba/ServeGen (arXiv 2505.09999). Two files: rates (CSV: for each window and client the rate and the fitted
pattern of its gaps) and lengths (JSON: for each client and part of the day quantiles of input and output). Requests
are made from them: gaps of the fitted pattern at the told rate, lengths by inversion of the quantiles, input and output
drawn independently, since only their own distributions are told. Each client is a tenant.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from typing import TYPE_CHECKING

from llmshed.errors import TraceError
from llmshed.workload.arrivals import renewal_arrivals
from llmshed.workload.gaps import LEAST_SHAPE, MOST_SHAPE, GapShape, Pattern
from llmshed.workload.readers.fields import name, number, seconds
from llmshed.workload.readers.lines import shown
from llmshed.workload.readers.reading import Reading
from llmshed.workload.readers.servegen_lengths import ClientLengths, read_lengths
from llmshed.workload.readers.table import table_rows
from llmshed.workload.request import TracedRequest

if TYPE_CHECKING:
    from random import Random

COLUMNS = ("window_start_s", "client", "rate_per_s", "pattern", "p1")
DEFAULT_WINDOW_SECONDS = 600.0
"""How long a window lasts that no other follows."""
MOST_RATE_PER_SECOND = 1e6


@dataclass(frozen=True, slots=True)
class ClientWindow:
    """What one client does during one window.

    Args:
        line: where it stands.
        start_seconds: start of the window.
        client: name of the client.
        rate_per_second: its requests a second; 0 when it is silent.
        shape: shape of its gaps.
    """

    line: int
    start_seconds: float
    client: str
    rate_per_second: float
    shape: GapShape


def read_servegen(chunks: Iterable[bytes], reading: Reading) -> Iterator[TracedRequest]:
    """Yield requests that follow the rates in `chunks` and the lengths in `reading.companion`.

    They start at 0 with the first window and end with the last, or after `reading.duration_seconds`.

    Raises:
        TraceError: a line or the lengths are broken, windows go back, a client has no lengths or there is no companion.
    """
    if reading.companion is None:
        raise TraceError("the rates need the file of lengths beside them: NAME_lengths.json for NAME_rates.csv")
    lengths = read_lengths(reading.companion)
    origin: float | None = None
    for rows, end_seconds in _windows(chunks):
        origin = rows[0].start_seconds if origin is None else origin
        stop = end_seconds if reading.duration_seconds is None else min(end_seconds, origin + reading.duration_seconds)
        clients = [_client(row, lengths, origin, stop, reading.rng) for row in rows if row.rate_per_second > 0]
        yield from merge(*clients, key=lambda request: request.at_seconds)
        if stop < end_seconds:
            return


def _client(
    row: ClientWindow, lengths: dict[str, ClientLengths], origin: float, end: float, rng: "Random"
) -> Iterator[TracedRequest]:
    if row.client not in lengths:
        raise TraceError(f"client {shown(row.client)} has no lengths in the second file", row.line)
    input_tokens, output_tokens = lengths[row.client].at(row.start_seconds)
    return (
        TracedRequest(
            at - origin,
            max(1, round(input_tokens.at(rng.random()))),
            max(1, round(output_tokens.at(rng.random()))),
            tenant=f"client-{row.client}",
        )
        for at in renewal_arrivals(row.shape, row.rate_per_second, rng, row.start_seconds, end)
    )


def _windows(chunks: Iterable[bytes]) -> Iterator[tuple[list[ClientWindow], float]]:
    """Yield the rows of each window and its end: the next one's start; the last is as long as the one before it."""
    lasts = DEFAULT_WINDOW_SECONDS
    held: list[ClientWindow] = []
    for start, group in groupby(_rows(chunks), key=lambda row: row.start_seconds):
        rows = list(group)
        _each_client_once(rows)
        if held:
            lasts = start - held[0].start_seconds
            if lasts < 0:
                raise TraceError("window_start_s goes back; sort the rates by window", rows[0].line)
            yield held, start
        held = rows
    if held:
        yield held, held[0].start_seconds + lasts


def _each_client_once(rows: list[ClientWindow]) -> None:
    seen: set[str] = set()
    for row in rows:
        if row.client in seen:
            raise TraceError(f"client {shown(row.client)} stands twice in one window", row.line)
        seen.add(row.client)


def _rows(chunks: Iterable[bytes]) -> Iterator[ClientWindow]:
    for line, (start, client, rate, pattern, shape) in table_rows(chunks, COLUMNS):
        yield ClientWindow(
            line,
            seconds(start, "window_start_s", line),
            name(client, "client", line),
            _rate(rate, line),
            _shape(pattern, shape, line),
        )


def _rate(text: str, line: int) -> float:
    rate = number(text, "rate_per_s", line)
    if rate > MOST_RATE_PER_SECOND:
        raise TraceError(f"rate_per_s is {shown(text)}; from 0 to {MOST_RATE_PER_SECOND:g} is accepted", line)
    return rate


def _shape(pattern: str, shape: str, line: int) -> GapShape:
    if pattern.strip() not in set(Pattern):
        raise TraceError(f"pattern is {shown(pattern)}; {', '.join(Pattern)} are accepted", line)
    family = Pattern(pattern.strip())
    if family is Pattern.EXPONENTIAL:
        return GapShape(family)
    value = number(shape, "p1", line)
    if not LEAST_SHAPE <= value <= MOST_SHAPE:
        raise TraceError(f"p1 is {shown(shape)}; a shape from {LEAST_SHAPE:g} to {MOST_SHAPE:g} is accepted", line)
    return GapShape(family, value)
