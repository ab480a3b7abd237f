"""Leaving out what a caller offered: each function returns another body and leaves the one that was sent."""

import math
from collections.abc import Collection, Mapping
from typing import Any

from llmshed.gateway.degrading.declared import Declared, Part, Place, text_field, text_without, tool_name

Body = dict[str, Any]


def without_tools(body: Mapping[str, Any], names: Collection[str]) -> Body:
    """Leave out tools by their names."""
    changed = dict(body)
    if names:
        tools = [tool for tool in body.get("tools") or () if tool_name(tool) not in names]
        if tools:
            changed["tools"] = tools
        else:  # engines refuse an empty list, and a choice or a text about none
            for name in ("tools", "tool_choice", "tool_prompt"):
                changed.pop(name, None)
    return changed


def optional_parts(declared: Declared, drop_share: float) -> tuple[Part, ...]:
    """Return what goes of the optional context: a share, rounded up, first listed first, down to what is to stay."""
    number = math.ceil(round(drop_share * len(declared.context), 6))  # 0.07 x 100 is 7.000000000000001 in binary
    return declared.context[: min(number, len(declared.context) - declared.keep)]


def without_parts(body: Mapping[str, Any], parts: Collection[Part]) -> Body:
    """Leave out parts, as they are placed in the body."""
    changed = dict(body)
    messages = body.get("messages")
    if isinstance(messages, list):
        changed["messages"] = _messages_without(messages, {part for part in parts if isinstance(part, Place)})
    elif (name := text_field(body)) is not None:
        changed[name] = text_without(body[name], parts)
    return changed


def _messages_without(messages: list[Mapping[str, Any]], gone: set[Place]) -> list[Mapping[str, Any]]:
    left: list[Mapping[str, Any]] = []
    for number, message in enumerate(messages):
        if Place(number) in gone:
            continue
        content = message.get("content")
        if isinstance(content, list):
            kept = [part for place, part in enumerate(content) if Place(number, place) not in gone]
            left.append(message if len(kept) == len(content) else {**message, "content": kept})
        else:
            left.append(message)
    return left
