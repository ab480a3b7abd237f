"""From the body of a chat request to a `ChatPrompt`: the fields that change the count, checked for their form.

What one engine refuses and another takes is left to its renderer; here is only what no engine can mean.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from llmshed.errors import PromptError
from llmshed.tokenizing.prompts import ChatPrompt

TEMPLATE_ARGUMENTS = frozenset(
    {
        # Qwen3, GLM, SmolLM3 / DeepSeek, Granite / gpt-oss / Seed-OSS / Qwen-VL / Llama 3
        *("enable_thinking", "thinking", "reasoning_effort", "thinking_budget", "add_vision_id"),
        *("tools_in_user_message", "date_string"),
    }
)
"""Arguments of public chat templates that a request may set; no other reaches a template.

A template may read any variable, and what it does with one is not known here: repeat a text by it, or leave messages
out. The renderers' own variables, as `messages`, are not among these."""
_MOST_CHARACTERS = 64
_MOST_NUMBER = 2**31 - 1


def chat_prompt(body: Mapping[str, Any]) -> ChatPrompt:
    """Turn a parsed body of `/v1/chat/completions` or `/chat_tokenize` into the prompt that is counted.

    Fields that do not change the prompt are not looked at. A `tools` of null is the same as none; an empty list is
    kept, since TGI adds its own function to it.

    Raises:
        PromptError: a field that the prompt is made of has no form that an engine accepts, or `chat_template` is
            given: a template is the operator's, since rendering one can take any time.
    """
    if body.get("chat_template") is not None:
        raise PromptError("chat_template: a request cannot bring a template; the model's own is used")
    return ChatPrompt(
        messages=_messages(body.get("messages")),
        tools=_tools(body.get("tools")),
        tool_choice=_tool_choice(body.get("tool_choice")),
        tool_prompt=_tool_prompt(body.get("tool_prompt")),
        template_kwargs=_template_kwargs(body.get("chat_template_kwargs")),
    )


def _messages(value: Any) -> Sequence[Mapping[str, Any]]:
    if not isinstance(value, list) or not value:
        raise PromptError(f"messages: a list of at least one message is needed, not {_kind(value)}")
    for place, message in enumerate(value):
        if not isinstance(message, dict):
            raise PromptError(f"messages[{place}]: an object with role and content is needed, not {_kind(message)}")
        if not isinstance(message.get("role"), str):
            raise PromptError(f"messages[{place}].role: a string is needed, not {_kind(message.get('role'))}")
    return value


def _tools(value: Any) -> Sequence[Mapping[str, Any]] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise PromptError(f"tools: a list of tool objects is needed, not {_kind(value)}")
    for place, tool in enumerate(value):
        if not isinstance(tool, dict):
            raise PromptError(f"tools[{place}]: an object is needed, not {_kind(tool)}")
    return value


def _tool_choice(value: Any) -> Any:
    """Check the forms of OpenAI's field; TGI also takes the bare name of a function."""
    match value:
        case None | str():
            return value
        case {"type": "function", "function": {"name": str()}}:
            return value
        case _:
            raise PromptError(
                'tool_choice: "auto", "none", "required", the name of a function or '
                f'{{"type": "function", "function": {{"name": ...}}}} is needed, not {_kind(value)}'
            )


def _tool_prompt(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise PromptError(f"tool_prompt: a string is needed, not {_kind(value)}")


def _template_kwargs(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise PromptError(f"chat_template_kwargs: an object is needed, not {_kind(value)}")
    if "chat_template" in value:
        raise PromptError("chat_template_kwargs.chat_template: a request cannot bring a template")
    for name, argument in value.items():
        if name not in TEMPLATE_ARGUMENTS:
            accepted = ", ".join(sorted(TEMPLATE_ARGUMENTS))
            raise PromptError(f"chat_template_kwargs: an argument that is not accepted; accepted: {accepted}")
        if not _is_plain(argument):
            raise PromptError(
                f"chat_template_kwargs.{name}: true, false, null, a whole number or a string of at most"
                f" {_MOST_CHARACTERS} characters is needed, not {_kind(argument)}"
            )
    return value


def _is_plain(argument: Any) -> bool:
    match argument:
        case None | bool():
            return True
        case int():
            return abs(argument) <= _MOST_NUMBER
        case str():
            return len(argument) <= _MOST_CHARACTERS
        case _:
            return False


_KINDS: Mapping[type, str] = {
    type(None): "null or nothing",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def _kind(value: Any) -> str:
    """Name the JSON type of a value without telling its content."""
    if value in ([], {}):
        return f"an empty {'list' if isinstance(value, list) else 'object'}"
    return _KINDS.get(type(value), type(value).__name__)
