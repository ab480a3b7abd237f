"""Fields of a line to numbers and names, each within bounds."""

import math
import re

from llmshed.errors import TraceError
from llmshed.workload.readers.lines import shown

MOST_TOKENS = 10_000_000
"""More than any context; the line that claims more is broken."""
LAST_SECONDS = 1e9
"""Three decades: no trace is longer, and a nanosecond still counts in a float that starts at 0."""
LONGEST_NAME = 128

# Programs that know only floats write 12 as 12.0.
_COUNT = re.compile(r"([0-9]{1,15})(?:\.0{1,6})?", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{0,18})?(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)


def token_count(text: str, column: str, line: int) -> int:
    """Return a count of tokens from 0 to `MOST_TOKENS`.

    Raises:
        TraceError: it is anything else.
    """
    match = _COUNT.fullmatch(text.strip())
    count = int(match[1]) if match else -1
    if not 0 <= count <= MOST_TOKENS:
        raise TraceError(f"{column} is {shown(text)}; a whole number from 0 to {MOST_TOKENS} is accepted", line)
    return count


def seconds(text: str, column: str, line: int) -> float:
    """Return a time or a duration in seconds, from 0 to `LAST_SECONDS`.

    Raises:
        TraceError: it is anything else, NaN and infinity included.
    """
    value = number(text, column, line)
    if value > LAST_SECONDS:
        raise TraceError(f"{column} is {shown(text)}; seconds from 0 to {LAST_SECONDS:g} are accepted", line)
    return value


def number(text: str, column: str, line: int) -> float:
    """Return a number that is finite and not negative.

    Raises:
        TraceError: it is anything else.
    """
    value = float(text) if _NUMBER.fullmatch(text.strip()) else math.nan
    if not math.isfinite(value):
        raise TraceError(f"{column} is {shown(text)}; a number from 0 on is accepted", line)
    return value


def name(text: str, column: str, line: int) -> str:
    """Return a name of 1 to `LONGEST_NAME` printable characters, without the spaces around it.

    Raises:
        TraceError: it is anything else.
    """
    stripped = text.strip()
    if not stripped.isprintable() or not 1 <= len(stripped) <= LONGEST_NAME:
        raise TraceError(
            f"{column} is {shown(text)}; a name of 1 to {LONGEST_NAME} printable characters is accepted", line
        )
    return stripped
