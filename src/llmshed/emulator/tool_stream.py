"""How TGI tells a forced tool call in a chat stream (router/src/chat.rs)."""

import re
from enum import Enum, auto
from typing import Any

import orjson

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


class _State(Enum):
    BUFFERING = auto()
    TOOL = auto()


class NoTool(Exception):  # noqa: N818 - what the model chose, not a fault
    """The model picked `no_tool`: TGI generates once more, without tools."""


class ToolStream:
    """Turns the pieces of a call's JSON into deltas: name and `{` first, then the arguments as they come."""

    def __init__(self) -> None:
        """Begin before the name is known."""
        self._state = _State.BUFFERING
        self._text = ""

    def push(self, piece: str) -> dict[str, Any] | None:
        """Take a piece and return the `function` of the delta to send; None while there is nothing to tell.

        Raises:
            NoTool: the call is of `no_tool`.
        """
        self._text += piece
        match self._state:
            case _State.BUFFERING:
                name = _call_name(self._text.rstrip(" \n\t\r,}") + "}}")
                if name is None:
                    return None
                if name == "no_tool":
                    raise NoTool
                self._state = _State.TOOL
                return {"name": name, "arguments": "{"}
            case _State.TOOL:
                if _call_name(self._text) is None:
                    return {"name": None, "arguments": piece}
                self._state = _State.BUFFERING
                return {"name": None, "arguments": piece.rstrip().removesuffix("}")}


def parse_call(text: str) -> tuple[str, dict[str, Any]] | None:
    """Return name and arguments of a complete call; None when the text is no call."""
    try:
        parsed: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    function = parsed.get("function") if isinstance(parsed, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("_name"), str):
        return None
    return function["_name"], {name: value for name, value in function.items() if name != "_name"}


def cut_text(text: str) -> str:
    """Return how TGI says that a call was cut: what its JSON reader missed, where, and the text itself."""
    what = "a string" if '"' in _STRING.sub("", text) else "an object"
    return f"EOF while parsing {what} at line 1 column {len(text.encode())} {orjson.dumps(text).decode()}"


def _call_name(text: str) -> str | None:
    call = parse_call(text)
    return None if call is None else call[0]
