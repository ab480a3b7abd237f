"""ServeGen's second file: quantiles of input and output lengths, for each client and part of the day."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from llmshed.errors import TraceError
from llmshed.workload.quantiles import QuantileFunction
from llmshed.workload.readers.fields import LAST_SECONDS, MOST_TOKENS
from llmshed.workload.readers.lines import shown, whole_text


@dataclass(frozen=True, slots=True)
class ClientLengths:
    """Length distributions of one client over the day.

    Args:
        starts: when each distribution begins to hold, in seconds, rising.
        parts: input and output lengths in tokens, one pair for each start.
    """

    starts: tuple[float, ...]
    parts: tuple[tuple[QuantileFunction, QuantileFunction], ...]

    def at(self, at_seconds: float) -> tuple[QuantileFunction, QuantileFunction]:
        """Return those of the last part that began by then; before the first one, those of the first."""
        return self.parts[max(0, bisect_right(self.starts, at_seconds) - 1)]


def read_lengths(chunks: Iterable[bytes]) -> dict[str, ClientLengths]:
    """Return the lengths of each client: `{"quantiles": [percent...], "clients": {client: {start_s: {...}}}}`.

    Raises:
        TraceError: the file is not of this form.
    """
    try:
        content = orjson.loads(whole_text(chunks))
    except orjson.JSONDecodeError as error:
        raise TraceError(f"the lengths are not JSON: {error}") from None
    shares = tuple(
        percent / 100 for percent in _numbers(_member(content, "quantiles", "the lengths"), "quantiles", 100)
    )
    clients = _object(_member(content, "clients", "the lengths"), "clients")
    return {client: _client(parts, shares, f"client {shown(client)}") for client, parts in clients.items()}


def _client(parts: Any, shares: tuple[float, ...], place: str) -> ClientLengths:
    named = ((_start(start, place), part) for start, part in _object(parts, place).items())
    by_start = sorted(named, key=lambda pair: pair[0])
    if not by_start:
        raise TraceError(f"{place} has no lengths")
    return ClientLengths(
        tuple(start for start, _ in by_start),
        tuple(
            (
                _quantiles(part, "input_tokens", shares, f"{place}, {start:g}"),
                _quantiles(part, "output_tokens", shares, f"{place}, {start:g}"),
            )
            for start, part in by_start
        ),
    )


def _quantiles(part: Any, key: str, shares: tuple[float, ...], place: str) -> QuantileFunction:
    try:
        return QuantileFunction(shares, _numbers(_member(part, key, place), f"{key} of {place}", MOST_TOKENS))
    except ValueError as error:
        raise TraceError(f"{key} of {place}: {error}") from None


def _start(text: str, place: str) -> float:
    if not (text.isascii() and text.isdigit()) or len(text) > 12 or int(text) > LAST_SECONDS:
        raise TraceError(f"{place} has a part {shown(text)}; the second at which it starts is accepted")
    return float(text)


def _numbers(value: Any, place: str, most: float) -> tuple[float, ...]:
    fits = isinstance(value, list) and all(type(one) in {int, float} and 0 <= one <= most for one in value)
    if not fits:
        raise TraceError(f"{place} is {shown(value)}; a list of numbers from 0 to {most:g} is accepted")
    return tuple(float(one) for one in value)


def _member(value: Any, key: str, place: str) -> Any:
    if key not in _object(value, place):
        raise TraceError(f"{place} has no {key}")
    return value[key]


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TraceError(f"{place} is {shown(value)}; an object is accepted")
    return value
