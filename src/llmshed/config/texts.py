"""From a TOML text to plain data with the line of every key."""

import re
from collections.abc import Mapping
from typing import Any

import tomli

from llmshed.config.paths import Path
from llmshed.config.toml_lines import key_lines


class TomlSyntaxError(ValueError):
    """The text is not TOML; the message begins with the line."""


def read_toml(text: str) -> tuple[dict[str, Any], dict[Path, int]]:
    """Return the data of a text and the line of each of its paths.

    Raises:
        TomlSyntaxError: `LINE: column COLUMN: what is wrong`.
    """
    try:
        return tomli.loads(text), key_lines(text)
    except tomli.TOMLDecodeError as error:
        raise TomlSyntaxError(f"{error.lineno}: column {error.colno}: not TOML: {_lowered(error.msg)}") from None
    except ValueError:  # Python reads no whole number of more digits, since that takes time by their square
        line, digits = _longest_number(text)
        raise TomlSyntaxError(f"{line}: a number of {digits} digits is longer than any that is read") from None
    except RecursionError:
        raise TomlSyntaxError("1: not TOML that can be read: too many tables or lists inside each other") from None


def line_of(lines: Mapping[Path, int], path: Path) -> int:
    """Return the line of a path, or of the nearest table around it; 1 when nothing of it stands in the text."""
    return next((lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), 1)


def _longest_number(text: str) -> tuple[int, int]:
    """Return the line and the digits of the longest run of digits."""
    longest = max(re.finditer(r"\d[\d_]*", text), key=lambda number: len(number[0].replace("_", "")))
    return text.count("\n", 0, longest.start()) + 1, len(longest[0].replace("_", ""))


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
