"""A JSON page on which an engine tells of itself, read so that another server on the address is recognised."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import orjson

from llmshed.engines.fields import shown
from llmshed.errors import EngineError

MAX_NAME_CHARACTERS: Final = 256
_MOST_NAMES_TOLD: Final = 12


@dataclass(frozen=True, slots=True)
class Description:
    """One object of a page: where it stands and which engine should have told it, for errors, and its fields."""

    path: str
    engine: str
    fields: Mapping[str, Any]

    @classmethod
    def of(cls, path: str, engine: str, parsed: object) -> Self:
        """Take a parsed page.

        Raises:
            EngineError: it is no object.
        """
        if not isinstance(parsed, Mapping):
            raise EngineError(f"{path}: the answer is not a JSON object, so this is not a {engine} server")
        return cls(path, engine, parsed)

    @classmethod
    def page(cls, pages: Mapping[str, bytes], path: str, engine: str) -> Self:
        """Take one of the pages that were fetched.

        Raises:
            EngineError: it was not answered, or not with a JSON object.
        """
        if path not in pages:
            raise EngineError(f"{path}: there is no such page. Is a {engine} server at this address?")
        try:
            parsed = orjson.loads(pages[path])
        except orjson.JSONDecodeError:
            parsed = None
        return cls.of(path, engine, parsed)

    def inside(self, name: str) -> "Description":
        """Return the object in a field.

        Raises:
            EngineError: it is missing, or none.
        """
        value = self.fields.get(name)
        if not isinstance(value, Mapping):
            raise self.unlike(name, "an object")
        return Description(self.path, self.engine, value)

    def text(self, name: str) -> str:
        """Return a name that fits into a header, a label and a line of the log.

        Raises:
            EngineError: it is missing, empty, long or not printable ASCII.
        """
        value = self.fields.get(name)
        if not isinstance(value, str) or not value:
            raise self.unlike(name, "a string")
        if len(value) > MAX_NAME_CHARACTERS or not value.isascii() or not value.isprintable():
            expected = f"1 to {MAX_NAME_CHARACTERS} printable ASCII characters"
            raise EngineError(f"{self.path}: `{name}` should be {expected}, but it is {shown(value)}.")
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a text; None where it is missing, null or empty.

        Raises:
            EngineError: as `text`.
        """
        return self.text(name) if self.fields.get(name) else None

    def bound(self, name: str) -> int:
        """Return a bound of the engine.

        Raises:
            EngineError: it is missing, or no whole number above 0.
        """
        value = self.fields.get(name)
        if type(value) is not int or value < 1:
            raise self.unlike(name, "a whole number above 0")
        return value

    def optional_bound(self, name: str) -> int | None:
        """Return a bound that not every version tells.

        Raises:
            EngineError: it is there, and no whole number above 0.
        """
        return None if self.fields.get(name) is None else self.bound(name)

    def unlike(self, name: str, expected: str) -> EngineError:
        """Say what came instead."""
        value = self.fields.get(name)
        came = f"it is {_kind(value)}" if name in self.fields else f"it is missing; told: {self._names()}"
        question = f"Is a {self.engine} server at this address?"
        return EngineError(f"{self.path}: `{name}` should be {expected}, but {came}. {question}")

    def _names(self) -> str:
        names = [shown(str(name)) for name in list(self.fields)[:_MOST_NAMES_TOLD]]
        return ", ".join(names) or "nothing"


def _kind(value: object) -> str:
    return f"{value}" if type(value) in {int, float} else f"a {type(value).__name__}"
