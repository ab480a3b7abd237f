"""Spans of time as they are typed: `90s`, `15m`, `1h`, `7d`, and sums of these as in `1h30m`."""

import re

import typer

_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SPAN = re.compile(r"(?:[0-9]{1,9}[smhd])+")
_PART = re.compile(r"([0-9]+)([smhd])")


def read_span(option: str, text: str, least_seconds: int, most_seconds: int) -> int:
    """Return a span in seconds.

    Raises:
        typer.BadParameter: it is none, or outside of its bounds; the text names the option and what is accepted.
    """
    seconds = sum(int(number) * _UNIT_SECONDS[unit] for number, unit in _PART.findall(text))
    if not _SPAN.fullmatch(text.strip()) or not least_seconds <= seconds <= most_seconds:
        accepted = f"{written_span(least_seconds)} to {written_span(most_seconds)}"
        raise typer.BadParameter(f"{option} {text!r}: a span as in 90s, 15m or 1h30m is needed, from {accepted}")
    return seconds


def written_span(seconds: float) -> str:
    """Return a span as it is typed, in the two largest of its units."""
    left, parts = round(seconds), []
    for unit in "dhms":
        number, left = divmod(left, _UNIT_SECONDS[unit])
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts[:2]) or "0s"
