"""The field `llmshed` of a body: what its caller says may be left out, held against the body itself."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError
from llmshed.engines.fields import malformed

FIELD: Final = "llmshed"
MOST_PARTS: Final = 256
"""Of each list; a body of 2 MB holds more messages than anybody marks one by one."""
MOST_TOOLS: Final = 128
_CHOICES_BY_RULE: Final = ("auto", "none", "required")
"""Values of `tool_choice` that are no names of tools; TGI takes any other string for one."""
TEXT_FIELDS: Final = ("inputs", "prompt")
"""Where a body that is no chat has its text."""


class Place(NamedTuple):
    """A message of a chat, or one part of its content; places count from 0."""

    message: int
    part: int | None = None


class Span(NamedTuple):
    """A part of a text, in characters (code points), the end not included."""

    start: int
    end: int


Part = Place | Span


@dataclass(frozen=True, slots=True)
class Declared:
    """What may be left out.

    Args:
        tools: names of tools that are enrichment.
        enrichment: parts that are.
        context: optional parts, those that go first first.
        keep: how many of these stay whatever happens.
    """

    tools: tuple[str, ...] = ()
    enrichment: tuple[Part, ...] = ()
    context: tuple[Part, ...] = ()
    keep: int = 0


NOTHING: Final = Declared()


def read_declared(body: Mapping[str, Any]) -> Declared:
    """Return what a body says may be left out; `NOTHING` where it says nothing.

    Args:
        body: a body that its engine's adapter has read, so that its own fields are of their kinds.

    Raises:
        BodyError: `malformed` for another form or for what cannot be left out; `unsupported_field` for another key.
    """
    given = body.get(FIELD)
    if given is None:
        return NOTHING
    parts = _object(given, FIELD, ("enrichment", "context"))
    enrichment = _object(parts.get("enrichment"), f"{FIELD}.enrichment", ("tools", "parts"))
    context = _object(parts.get("context"), f"{FIELD}.context", ("parts", "keep"))
    declared = Declared(
        tools=_tools(enrichment.get("tools"), body),
        enrichment=_parts(enrichment.get("parts"), f"{FIELD}.enrichment.parts", body),
        context=_parts(context.get("parts"), f"{FIELD}.context.parts", body),
        keep=_whole(context.get("keep", 0), f"{FIELD}.context.keep", "a whole number of parts, at least 0"),
    )
    if declared.keep > len(declared.context):
        raise malformed(
            f"{FIELD}.context.keep", f"at most the {len(declared.context)} parts that are listed", declared.keep
        )
    _refuse_overlaps(declared)
    _refuse_what_leaves_nothing(declared, body)
    return declared


def text_field(body: Mapping[str, Any]) -> str | None:
    """Return the field in which a body that is no chat has one text; None where there is none."""
    return next((name for name in TEXT_FIELDS if isinstance(body.get(name), str)), None)


def last_user_message(messages: list[Mapping[str, Any]]) -> int | None:
    """Return the place of the message that asks; None in a chat without one."""
    return next((place for place in reversed(range(len(messages))) if messages[place].get("role") == "user"), None)


def _object(given: Any, path: str, names: tuple[str, ...]) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise malformed(path, "an object", given)
    for name in given:
        if name not in names:
            accepted = " and ".join(f"`{one}`" for one in names)
            text = f"`{path}` has a field that is not known; accepted: {accepted}"
            raise BodyError(Reason.UNSUPPORTED_FIELD, text, path)
    return given


def _whole(given: Any, path: str, accepted: str) -> int:
    if type(given) is not int or given < 0:  # True is an int to Python
        raise malformed(path, accepted, given)
    return given


def _listed(given: Any, path: str, most: int) -> list[Any]:
    if given is None:
        return []
    if not isinstance(given, list) or len(given) > most:
        raise malformed(path, f"a list of at most {most}", given if not isinstance(given, list) else len(given))
    return given


def _tools(given: Any, body: Mapping[str, Any]) -> tuple[str, ...]:
    path = f"{FIELD}.enrichment.tools"
    names = _listed(given, path, MOST_TOOLS)
    known = {name for tool in body.get("tools") or () if (name := tool_name(tool)) is not None}
    for place, name in enumerate(names):
        if not isinstance(name, str) or name not in known or name in names[:place]:
            raise malformed(f"{path}[{place}]", "the name of one of the request's tools, once", name)
    chosen = body.get("tool_choice")
    forced = chosen if isinstance(chosen, str) else tool_name(chosen)
    if forced in names and forced not in _CHOICES_BY_RULE:
        raise malformed(path, "no tool that `tool_choice` asks for", forced)
    return tuple(names)


def tool_name(tool: Any) -> str | None:
    """Return the name of a tool, or of the one that a choice asks for."""
    function = tool.get("function") if isinstance(tool, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


def _parts(given: Any, path: str, body: Mapping[str, Any]) -> tuple[Part, ...]:
    items = _listed(given, path, MOST_PARTS)
    messages = body.get("messages")
    if isinstance(messages, list):
        asks = last_user_message(messages)
        return tuple(_place(item, f"{path}[{place}]", messages, asks) for place, item in enumerate(items))
    name = text_field(body)
    if name is None and items:
        raise malformed(path, "no parts, since the request has several prompts or one of token ids", len(items))
    length = 0 if name is None else len(body[name])
    return tuple(_span(item, f"{path}[{place}]", length) for place, item in enumerate(items))


def _place(item: Any, path: str, messages: list[Mapping[str, Any]], asks: int | None) -> Place:
    fields = _object(item, path, ("message", "part"))
    number = _whole(fields.get("message"), f"{path}.message", "the place of a message, from 0")
    if number >= len(messages):
        raise malformed(f"{path}.message", f"the place of one of {len(messages)} messages, from 0", number)
    message = messages[number]
    if fields.get("part") is not None:
        content = message.get("content")
        part = _whole(fields["part"], f"{path}.part", "the place of a part, from 0")
        if not isinstance(content, list) or part >= len(content):
            raise malformed(f"{path}.part", "the place of a part of that message's content, which is a list", part)
        return Place(number, part)
    if number == asks:
        raise malformed(f"{path}.message", "no whole last message of the user, since it is what is asked", number)
    if message.get("role") == "tool" or message.get("tool_calls"):
        raise malformed(f"{path}.message", "no call of a tool and no answer of one, which belong together", number)
    return Place(number)


def _span(item: Any, path: str, length: int) -> Span:
    fields = _object(item, path, ("start", "end"))
    start = _whole(fields.get("start"), f"{path}.start", "a character's place, from 0")
    end = _whole(fields.get("end"), f"{path}.end", "the place behind the last character")
    if not start < end <= length:
        raise malformed(path, f"a start below its end, and that at most {length:,}", f"{start} to {end}")
    return Span(start, end)


def _refuse_overlaps(declared: Declared) -> None:
    paths = (
        *((part, f"{FIELD}.enrichment.parts[{place}]") for place, part in enumerate(declared.enrichment)),
        *((part, f"{FIELD}.context.parts[{place}]") for place, part in enumerate(declared.context)),
    )
    before: Part | None = None
    for part, path in sorted(paths, key=lambda one: _order(one[0])):
        if before is not None and _meet(before, part):
            raise malformed(path, "no part that another one names too", str(tuple(part)))
        before = part


def _order(part: Part) -> tuple[int, int]:
    """Return a place in the body: a whole message stands before its parts."""
    return (part.start, part.end) if isinstance(part, Span) else (part.message, -1 if part.part is None else part.part)


def _meet(before: Part, part: Part) -> bool:
    if isinstance(before, Span) or isinstance(part, Span):
        return isinstance(before, Span) and isinstance(part, Span) and part.start < before.end
    return before.message == part.message and (before.part is None or before.part == part.part)


def _refuse_what_leaves_nothing(declared: Declared, body: Mapping[str, Any]) -> None:
    """Hold that something to answer is left if all goes that is offered."""
    offered = (*declared.enrichment, *declared.context)
    messages = body.get("messages")
    if not isinstance(messages, list):
        name = text_field(body)
        if name is not None and offered and not text_without(body[name], offered).strip():
            raise malformed(FIELD, "a text of which something stays", "all of it")
        return
    whole = {place.message for place in _places(offered) if place.part is None}
    if messages and len(whole) == len(messages):
        raise malformed(FIELD, "a chat of which a message stays", "all of them")
    parts: dict[int, int] = {}
    for place in _places(offered):
        if place.part is not None:
            parts[place.message] = parts.get(place.message, 0) + 1
    for number, count in parts.items():
        if count == len(messages[number]["content"]):
            raise malformed(FIELD, "messages of which a part stays", f"all parts of message {number}")


def text_without(text: str, parts: Iterable[Part]) -> str:
    """Return a text without those of the parts that are spans of it; they do not overlap."""
    left, at = [], 0
    for span in sorted(part for part in parts if isinstance(part, Span)):
        left.append(text[at : span.start])
        at = span.end
    return "".join((*left, text[at:]))


def _places(parts: tuple[Part, ...]) -> Iterator[Place]:
    return (part for part in parts if isinstance(part, Place))
