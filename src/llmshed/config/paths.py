"""Where a setting stands: a path of names and indexes, and its spelling in messages, flags and the environment."""

import json
import re

Path = tuple[str | int, ...]
"""Names of tables and settings, and indexes (from 0) into arrays."""

PREFIX = "LLMSHED_"
"""How the name of every environment variable of the program begins."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STEP = re.compile(r"(?:^|(?<=[\w\]-])\.)([A-Za-z0-9_-]+)|\[([0-9]{1,6})\]")


def spelled(path: Path) -> str:
    """Spell a path as messages and `--set` do: `pools[0].replicas[1].url`.

    A name that TOML would quote is quoted as JSON does, so that a strange key cannot forge a message.
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (part if _BARE.fullmatch(part) else json.dumps(part))
    return text


def parsed(text: str) -> Path | None:
    """Read `pools[0].name` or `pools.0.name`; None when the text is no path."""
    path: list[str | int] = []
    end = 0
    for step in _STEP.finditer(text):
        if step.start() != end:
            return None
        name, index = step.groups()
        path.append(int(index) if name is None else _part(name))
        end = step.end()
    return tuple(path) if path and end == len(text) else None


def variable(path: Path) -> str:
    """Spell a path as an environment variable: `LLMSHED_POOLS__0__REPLICAS__1__URL`."""
    return PREFIX + "__".join(str(part).upper() for part in path)


def from_variable(name: str) -> Path:
    """Read the name of an environment variable that begins with `PREFIX`."""
    return tuple(_part(part.lower()) for part in name.removeprefix(PREFIX).split("__"))


def overlap(one: Path, other: Path) -> bool:
    """Say whether one path is the other or stands inside it."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _part(text: str) -> str | int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else text
