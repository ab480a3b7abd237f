"""What a settings model accepts, in words: looked up by path for messages, variables and the manual."""

import difflib
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from llmshed.config.base import ACCEPTED
from llmshed.config.paths import Path, spelled, variable

Schema = Mapping[str, Any]

_TYPES = {"boolean": "true or false", "integer": "a whole number", "number": "a number", "string": "text in quotes"}


class Catalogue:
    """The JSON schema of a model, read as a tree of settings."""

    def __init__(self, model: type[BaseModel]) -> None:
        """Derive the schema once; a lookup then costs a few dictionary reads."""
        self._root: Schema = model.model_json_schema()
        self._defs: Mapping[str, Schema] = self._root.get("$defs", {})

    def find(self, path: Path) -> Schema | None:
        """Return the schema of the setting at a path; None when there is no such setting."""
        schema: Schema | None = self._root
        for part in path:
            schema = self._resolved(schema or {})
            schema = schema.get("items") if isinstance(part, int) else schema.get("properties", {}).get(part)
            if schema is None:
                return None
        return self._resolved(schema or {})

    def names(self, table: Path) -> tuple[str, ...]:
        """Return the names of the settings of a table; empty when the path is no table."""
        return tuple((self.find(table) or {}).get("properties", ()))

    def leaves(self, table: Path = ()) -> Iterator[Path]:
        """Yield the path of every setting that is no table, with index 0 for the elements of arrays of tables."""
        schema = self.find(table) or {}
        for name in schema.get("properties", ()):
            yield from self.leaves((*table, name))
        if "properties" in self._resolved(schema.get("items", {})):
            yield from self.leaves((*table, 0))
        elif "properties" not in schema:
            yield table

    def takes_only_text(self, path: Path) -> bool:
        """Say whether the setting is a string, so that a value such as `10` is meant as text."""
        schema = self.find(path) or {}
        return schema.get("type") == "string" and "format" not in schema

    def accepted(self, path: Path) -> str:
        """Say in words what the setting at a path accepts."""
        return self._in_words(self.find(path) or {})

    def nearest(self, path: Path) -> Path | None:
        """Return the setting that an unknown path was probably meant to be; None when nothing is near.

        A name beside it comes first, then the same name in another table, then whatever is spelled alike.
        """
        table, name = path[:-1], str(path[-1])
        beside = difflib.get_close_matches(name, self.names(table), n=1, cutoff=0.6)
        if beside:
            return (*table, beside[0])
        indexes = [part for part in path if isinstance(part, int)]
        known = {spelled(leaf): leaf for leaf in self.leaves()}
        elsewhere = [leaf for leaf in known.values() if leaf[-1] == name]
        alike = difflib.get_close_matches(re.sub(r"\[\d+\]", "[0]", spelled(path)), known, n=1, cutoff=0.75)
        found = elsewhere[0] if len(elsewhere) == 1 else known[alike[0]] if alike else None
        return None if found is None else _with_indexes(found, indexes)

    def nearest_variable(self, name: str) -> str | None:
        """Return the environment variable that an unknown one was probably meant to be."""
        indexes = [int(part) for part in name.split("_") if part.isascii() and part.isdigit() and len(part) <= 6]
        known = {variable(leaf): leaf for leaf in self.leaves()}
        alike = difflib.get_close_matches(re.sub(r"(?<=_)\d+(?=_|$)", "0", name.upper()), known, n=1, cutoff=0.75)
        return variable(_with_indexes(known[alike[0]], indexes)) if alike else None

    def _resolved(self, schema: Schema) -> Schema:
        """Follow a reference, and see the type behind `type | None`: TOML has no null, so unset is not a value."""
        while True:
            if "$ref" in schema:
                schema = self._defs[schema["$ref"].rpartition("/")[2]]
            elif "anyOf" in schema:
                (schema,) = [option for option in schema["anyOf"] if option.get("type") != "null"]
            else:
                return schema

    def _in_words(self, schema: Schema) -> str:
        schema = self._resolved(schema)
        if ACCEPTED in schema:
            return str(schema[ACCEPTED])
        choices = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
        if choices:
            return listed([f'"{choice}"' for choice in choices], "or")
        if schema.get("type") == "array":
            least = schema.get("minItems", 0)
            return f"a list{f' of at least {least}' if least else ''}, each {self._in_words(schema['items'])}"
        if "properties" in schema:
            needed = listed([f"`{name}`" for name in schema.get("required", ())], "and")
            return f"a table with at least {needed}" if needed else "a table"
        if schema.get("format") == "date":
            return "a date without quotes, as in 2026-11-30"
        return _TYPES.get(schema.get("type", ""), "a value") + _bounds(schema)


@functools.cache
def catalogue_of(model: type[BaseModel]) -> Catalogue:
    """Return the catalogue of a model, made once: the schema of all settings takes longer than reading a file."""
    return Catalogue(model)


def listed(words: list[str], conjunction: str) -> str:
    """Join words as a sentence does: `a, b or c`."""
    return f"{', '.join(words[:-1])} {conjunction} {words[-1]}" if len(words) > 1 else "".join(words)


def _bounds(schema: Schema) -> str:
    words = [
        f"{word} {_number(schema[key])}"
        for key, word in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "below"),
        )
        if key in schema
    ]
    return f", {listed(words, 'and')}" if words else ""


def _number(value: float) -> str:
    return f"{int(value) if value == int(value) else value:_}"


def _with_indexes(path: Path, indexes: list[int]) -> Path:
    left = iter(indexes)
    return tuple(next(left, part) if isinstance(part, int) else part for part in path)
