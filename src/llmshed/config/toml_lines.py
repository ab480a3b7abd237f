"""On which line of a TOML text each key stands: the TOML reader tells lines of syntax errors only."""

import re
from bisect import bisect_right

import tomli

from llmshed.config.paths import Path

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_STRING = re.compile(
    r'"""(?:\\[\s\S]|(?!""")[^\\])*"""(?:"{0,2})'  # up to two quotes may stand before the closing three
    r"|'''(?:(?!''')[\s\S])*'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
)
_BARE_KEY = re.compile(r"[^\s.=\[\]{}\"'#,]+")
_SCALAR = re.compile(r"[^,\]}\n#]*")


def key_lines(text: str) -> dict[Path, int]:
    """Return the line (from 1) of every table, key and array element of a valid TOML text.

    A table that headers or dotted keys open several times has the line of the first.
    """
    return _Scanner(text).scan()


class _Scanner:
    """Walks once over a text that the TOML reader took, so that no form needs to be checked again."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._lines: dict[Path, int] = {}
        self._elements: dict[Path, int] = {}  # arrays of tables: how many were opened so far

    def scan(self) -> dict[Path, int]:
        table: Path = ()
        self._skip(_BLANK)
        while self._at < len(self._text):
            if self._next_is("["):
                table = self._header()
            else:
                self._key_value(table)
            self._skip(_BLANK)
        return self._lines

    def _header(self) -> Path:
        line = self._line()
        array = self._text.startswith("[[", self._at)
        self._at += 2 if array else 1
        keys = self._key()
        self._at += 2 if array else 1
        table: Path = ()
        for key in keys[:-1]:
            table = self._inside((*table, key), line)
        table = (*table, keys[-1])
        if array:
            self._lines.setdefault(table, line)
            self._elements[table] = self._elements.get(table, 0) + 1
        return self._inside(table, line)

    def _inside(self, table: Path, line: int) -> Path:
        """Note a table; a path into an array of tables means its last element."""
        self._lines.setdefault(table, line)
        if table in self._elements:
            table = (*table, self._elements[table] - 1)
            self._lines.setdefault(table, line)
        return table

    def _key_value(self, table: Path) -> None:
        line = self._line()
        for key in self._key():
            table = (*table, key)
            self._lines.setdefault(table, line)
        self._at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(table)

    def _value(self, path: Path) -> None:
        if self._next_is("["):
            self._array(path)
        elif self._next_is("{"):
            self._inline_table(path)
        elif not self._skip(_STRING):
            self._skip(_SCALAR)

    def _array(self, path: Path) -> None:
        self._at += 1
        index = 0
        self._skip(_BLANK)
        while not self._next_is("]"):
            self._lines.setdefault((*path, index), self._line())
            self._value((*path, index))
            index += 1
            self._skip_comma()
        self._at += 1

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        self._skip(_BLANK)
        while not self._next_is("}"):
            self._key_value(path)
            self._skip_comma()
        self._at += 1

    def _key(self) -> list[str]:
        """Read a dotted key up to the sign that ends it."""
        keys: list[str] = []
        while True:
            self._skip(_SPACE)
            quoted = self._take(_STRING)
            keys.append(tomli.loads(f"key = {quoted}")["key"] if quoted else self._take(_BARE_KEY))
            self._skip(_SPACE)
            if not self._next_is("."):
                return keys
            self._at += 1

    def _skip_comma(self) -> None:
        self._skip(_BLANK)
        if self._next_is(","):
            self._at += 1
            self._skip(_BLANK)

    def _next_is(self, sign: str) -> bool:
        return self._text.startswith(sign, self._at)

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[0]

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        return self._take(pattern) != ""

    def _line(self) -> int:
        return bisect_right(self._newlines, self._at) + 1
