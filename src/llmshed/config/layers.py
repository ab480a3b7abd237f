"""Settings from the environment and from flags, laid over those of the file; each keeps where it came from."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import tomli

from llmshed.config.catalogue import Catalogue
from llmshed.config.paths import PREFIX, Path, from_variable, parsed, spelled
from llmshed.config.validation import unknown_hint

_KUBERNETES = "KUBERNETES_SERVICE_HOST"
_SERVICE_LINK = re.compile(
    rf"{PREFIX}(?:[A-Z0-9_]+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?"
    r"|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)"
)
"""What Kubernetes puts into every container of a namespace that holds a Service named `llmshed...`."""


@dataclass(slots=True)
class Layers:
    """The settings so far: plain data, the place of each path that was set, and what could not be laid on.

    Attributes:
        raw: what is to be validated.
        places: `FILE:LINE`, `env VARIABLE` or `flag --set PATH`, for each path that was set.
        problems: mistakes found on the way, each beginning with its place.
    """

    catalogue: Catalogue
    raw: dict[str, Any]
    places: dict[Path, str]
    problems: list[str] = field(default_factory=list)

    def lay_environment(self, environ: Mapping[str, str]) -> None:
        """Lay the `LLMSHED_*` variables on; an unknown one is a problem, since it was meant to do something."""
        for name, path in sorted(_variables(environ), key=lambda pair: _order(pair[1])):
            place = f"env {name}"
            if self.catalogue.find(path) is None:
                near = self.catalogue.nearest_variable(name)
                hint = f"did you mean `{near}`?" if near else "names are LLMSHED_TABLE__SETTING, as LLMSHED_LOG__LEVEL"
                self.problems.append(f"{place}: no such setting ({hint})")
            else:
                self._lay(path, environ[name], place)

    def lay_flags(self, overrides: Mapping[str, str]) -> None:
        """Lay the settings of the command line on, by their paths (`server.listen`, `pools[0].name`)."""
        paths = {text: parsed(text) for text in overrides}
        for text, path in sorted(paths.items(), key=lambda pair: _order(pair[1] or ())):
            place = f"flag --set {text}"
            if path is None:
                self.problems.append(f"{place}: not the path of a setting, as `server.listen` or `pools[0].name`")
            elif self.catalogue.find(path) is None:
                hint = unknown_hint(self.catalogue, path)
                self.problems.append(f"{place}: {spelled(path)}: unknown setting {hint}")
            else:
                self._lay(path, overrides[text], place)

    def place(self, path: Path, fallback: str) -> str:
        """Return where a path, or what is around it, was set."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return fallback

    def _lay(self, path: Path, text: str, place: str) -> None:
        value = read_value(text, only_text=self.catalogue.takes_only_text(path))
        holder: Any = self.raw
        for depth, part in enumerate(path):
            if not _can_hold(holder, part):
                return  # the file holds something else there, which validation tells
            if isinstance(part, int) and part > len(holder):
                size = len(holder)
                self.problems.append(f"{place}: {spelled(path[:depth])} has {size}, so the next index is {size}")
                return
            if depth < len(path) - 1:
                holder = self._entered(holder, path[: depth + 1], path[depth + 1], place)
            elif isinstance(part, int) and part == len(holder):
                holder.append(value)
            else:
                holder[part] = value
        self.places = {known: where for known, where in self.places.items() if known[: len(path)] != path}
        self.places.update({(*path, *inner): place for inner in _inner(value)})

    def _entered(self, holder: Any, path: Path, following: str | int, place: str) -> Any:
        """Return the table or list at the end of `path`, made now when there is none."""
        part = path[-1]
        fresh: Any = [] if isinstance(following, int) else {}
        if isinstance(part, int) and part == len(holder):
            holder.append(fresh)
            self.places[path] = place
        elif isinstance(part, str) and part not in holder:
            holder[part] = fresh
            self.places[path] = place
        return holder[part]


def read_value(text: str, *, only_text: bool) -> Any:
    """Read a value from a variable or a flag: as TOML where it is, else as plain text.

    `only_text` keeps `10` and `true` as text for settings that are strings; quotes around the whole still go.
    """
    try:
        table = tomli.loads(f"value = {text}")
    except (tomli.TOMLDecodeError, RecursionError):
        return text
    value = table["value"]
    return text if len(table) > 1 or (only_text and not isinstance(value, str)) else value


def _variables(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield the program's variables; upper case only, as documented, so that `llmshed_x` is told as unknown."""
    linked = _KUBERNETES in environ
    for name in environ:
        if name.upper().startswith(PREFIX) and not (linked and _SERVICE_LINK.fullmatch(name)):
            yield name, from_variable(name) if name == name.upper() else (name,)


def _order(path: Path) -> tuple[tuple[bool, int | str], ...]:
    """Order paths so that a table comes before what is in it, and elements by number."""
    return tuple((isinstance(part, str), part) for part in path)


def _can_hold(holder: Any, part: str | int) -> bool:
    return isinstance(holder, list if isinstance(part, int) else dict)


def _inner(value: Any) -> Iterator[Path]:
    """Yield the paths inside a value, its own first."""
    yield ()
    for key, element in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        for path in _inner(element):
            yield (key, *path)
