"""Telling a model not to think before it answers, by what its engine passes on."""

from collections.abc import Mapping
from typing import Any, Final

from llmshed.gateway.degrading.declared import last_user_message

ARGUMENTS: Final = "chat_template_kwargs"


def with_template_argument(body: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Set an argument of the chat template to false, on engines that pass it; None where it is, or in no chat."""
    given = body.get(ARGUMENTS)
    arguments = given if isinstance(given, dict) else {}
    if not isinstance(body.get("messages"), list) or arguments.get(name) is False:
        return None
    return {**body, ARGUMENTS: {**arguments, name: False}}


def with_prompt_suffix(body: Mapping[str, Any], suffix: str) -> dict[str, Any] | None:
    """Put a text behind the last message of the user; None where it stands there, in no chat, or without a user."""
    messages = body.get("messages")
    place = last_user_message(messages) if isinstance(messages, list) else None
    if not isinstance(messages, list) or place is None:
        return None
    content = _with_suffix(messages[place].get("content"), suffix)
    if content is None:
        return None
    return {**body, "messages": [*messages[:place], {**messages[place], "content": content}, *messages[place + 1 :]]}


def _with_suffix(content: Any, suffix: str) -> Any:
    if isinstance(content, str):
        return None if content.endswith(suffix) else content + suffix
    if not isinstance(content, list):
        return None
    last = content[-1] if content else None
    if isinstance(last, dict) and last.get("type") == "text" and str(last.get("text", "")).endswith(suffix):
        return None
    return [*content, {"type": "text", "text": suffix}]
