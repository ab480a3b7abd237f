"""What TGI's router makes of messages and tools before its chat template sees them (router/src/lib.rs).

Forms that serde would refuse with a 422 are refused here with the place of the field. One looseness of serde is not
followed: it also reads tagged objects from arrays.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from llmshed.errors import PromptError
from llmshed.tokenizing import serde_json
from llmshed.tokenizing.prompts import ChatPrompt

DEFAULT_TOOL_PROMPT = (
    "\nGiven the functions available, please respond with a JSON for a function call with its proper arguments that"
    " best answers the given prompt. Respond in the format {name: function name, parameters: dictionary of argument"
    " name and its value}.Do not use variables.\n"
)
"""Text that TGI appends to the last message when tools are offered (router/src/lib.rs, `default_tool_prompt`)."""

# Added to the tools unless the request says which to use, or none (router/src/infer/tool_grammar.rs).
_NO_TOOL = {
    "type": "function",
    "function": {
        "description": "Open ended response with no specific tool selected",
        "name": "no_tool",
        "arguments": '{"type":"object"}',
    },
}


def tools_in_use(prompt: ChatPrompt) -> list[dict[str, Any]] | None:
    """Return the tools that the template sees, in serde's field order; None when the request runs without tools.

    Raises:
        PromptError: a tool lacks a field, or `tool_choice` names a function that is not offered.
    """
    if prompt.tools is None:
        return None
    tools = [_tool(tool, f"tools[{place}]") for place, tool in enumerate(prompt.tools)]
    match prompt.tool_choice:
        case None | "auto":
            return [*tools, _NO_TOOL]
        case "required":
            return tools or None
        case "none":
            return None
        case str(name) | {"function": {"name": str(name)}}:
            named = [tool for tool in tools if tool["function"]["name"] == name]
            if not named:
                raise PromptError(f"tool_choice: no tool of the name {name[:64]!r} is offered")
            return named[:1]
        case _:
            raise PromptError("tool_choice: neither a word, a name of a function nor an object that names one")


def flatten(messages: Sequence[Mapping[str, Any]], last_text: str = "") -> list[dict[str, str]]:
    """Return messages of role and content alone; `last_text` goes to the end of the last message that has content.

    Parts are joined without anything between them, images as `![](url)`. Tool calls are told as JSON, but only where
    the message has no content. `name`, `tool_call_id` and the rest are dropped, and so is `last_text` when the last
    message is one of tool calls.

    Raises:
        PromptError: a message has a form that TGI refuses.
    """
    flat = []
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        if not isinstance(message.get("role"), str):
            raise PromptError(f"{where}.role: a string is needed")
        if not isinstance(message.get("name"), str | None):
            raise PromptError(f"{where}.name: a string is needed")
        content = _content(message, where, last_text if place == len(messages) - 1 else "")
        # Checked here, since the binding of the template engine would put U+FFFD in its place without a word.
        flat.append({"role": _unicode(message["role"], where), "content": _unicode(content, where)})
    return flat


def _content(message: Mapping[str, Any], where: str, last_text: str) -> str:
    content = message.get("content")
    match content:
        case str():
            return content + last_text
        case list():
            return "".join(_part(part, f"{where}.content[{place}]") for place, part in enumerate(content)) + last_text
        case None if isinstance(message.get("tool_calls"), list):
            return serde_json.dumps(
                [_tool_call(call, f"{where}.tool_calls[{place}]") for place, call in enumerate(message["tool_calls"])]
            )
        case _:
            raise PromptError(f"{where}: content as a string or a list of parts, or tool_calls, is needed")


def _part(part: Any, where: str) -> str:
    match part:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return f"![]({url})"
        case _:
            raise PromptError(
                f'{where}: {{"type": "text", "text": ...}} or {{"type": "image_url", "image_url": {{"url": ...}}}} '
                "is needed"
            )


def _tool_call(call: Any, where: str) -> dict[str, Any]:
    match call:
        case {"id": str(call_id), "type": str(kind), "function": dict(function)}:
            return {"id": call_id, "type": kind, "function": _function(function, f"{where}.function")}
        case _:
            raise PromptError(f"{where}: id and type as strings and a function object are needed")


def _tool(tool: Any, where: str) -> dict[str, Any]:
    match tool:
        case {"type": str(kind), "function": dict(function)}:
            return {"type": _unicode(kind, where), "function": _function(function, f"{where}.function")}
        case _:
            raise PromptError(f"{where}: type as a string and a function object are needed")


def _unicode(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PromptError(f"{where}: the text holds half of a surrogate pair, so it is not Unicode") from None
    return text


def _function(function: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Write a function as TGI does: its parameters, under whichever name they came, as one JSON string."""
    name, description = function.get("name"), function.get("description")
    if not isinstance(name, str):
        raise PromptError(f"{where}.name: a string is needed")
    if not isinstance(description, str | None):
        raise PromptError(f"{where}.description: a string is needed")
    given = [key for key in ("arguments", "parameters") if key in function]
    if len(given) != 1:
        raise PromptError(f"{where}: exactly one of parameters and arguments is needed")
    return {
        "description": None if description is None else _unicode(description, where),
        "name": _unicode(name, where),
        "arguments": serde_json.dumps(function[given[0]]),
    }
