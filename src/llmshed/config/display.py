"""The settings in force as text: what `llmshed config show` prints, and the JSON schemas that editors check by."""

from collections.abc import Iterator
from typing import Any

import tomli_w
from pydantic import BaseModel

from llmshed.config.loading import LoadedConfig
from llmshed.config.paths import Path, spelled

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def as_toml(loaded: LoadedConfig, *, origins: bool) -> str:
    """Return every setting in force as TOML that parses back to the same configuration.

    Unset settings are comments, since TOML has no null; with `origins` each line tells where its value came from.
    """
    return "\n".join(_table(loaded.config, (), loaded, origins=origins)).strip() + "\n"


def all_origins(loaded: LoadedConfig) -> dict[str, str]:
    """Return the origin of every single setting in force, by its spelled path."""
    return {spelled(path): loaded.origin(path) for path, _ in leaves(loaded.config)}


def leaves(model: BaseModel, table: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the path and value of every setting that is no table; values are as in the model."""
    for name, value in _settings(model):
        path = (*table, name)
        if isinstance(value, BaseModel):
            yield from leaves(value, path)
        elif _is_array_of_tables(value):
            for index, element in enumerate(value):
                yield from leaves(element, (*path, index))
        else:
            yield path, value


def json_schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    """Return the JSON schema of a TOML file, for editors (`#:schema FILE` in its first line)."""
    return {"$schema": _DIALECT, **model.model_json_schema(), "title": title}


def _settings(model: BaseModel) -> Iterator[tuple[str, Any]]:
    for name, info in type(model).model_fields.items():
        yield info.alias or name, getattr(model, name)


def _is_array_of_tables(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], BaseModel)


def _table(model: BaseModel, path: Path, loaded: LoadedConfig, *, origins: bool) -> Iterator[str]:
    """Yield the lines of a table: its own settings first, as TOML demands, then the tables inside it."""
    tables = []
    for name, value in _settings(model):
        if isinstance(value, BaseModel) or _is_array_of_tables(value):
            tables.append((name, value))
            continue
        line = f"# {name} is unset" if value is None else f"{name} = {_value(value)}"
        yield f"{line}  # {loaded.origin((*path, name))}" if origins else line
    for name, value in tables:
        inner = (*path, name)
        header = ".".join(part for part in inner if isinstance(part, str))
        if isinstance(value, BaseModel):
            lines = list(_table(value, inner, loaded, origins=origins))
            yield from ("", f"[{header}]", *lines) if lines and lines[0] else lines  # a header for nothing says nothing
            continue
        for index, element in enumerate(value):
            yield from ("", f"[[{header}]]")
            yield from _table(element, (*inner, index), loaded, origins=origins)


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_value(element) for element in value)}]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").strip()
