"""How large a prompt is before it is rendered: the measure of the counting queues."""

from typing import Any, assert_never

from llmshed.tokenizing.prompts import ChatPrompt, IdsPrompt, Prompt, TextPrompt

_VALUE_BYTES = 8
"""What a number, a boolean or a null counts for."""


def prompt_bytes(prompt: Prompt) -> int:
    """Return the UTF-8 bytes of the prompt's texts, keys and tools; token ids need no counting and are 0."""
    match prompt:
        case TextPrompt(text):
            return _text_bytes(text)
        case ChatPrompt():
            return _json_bytes([prompt.messages, prompt.tools, prompt.tool_prompt, prompt.template_kwargs])
        case IdsPrompt():
            return 0
        case _:
            assert_never(prompt)


def _text_bytes(text: str) -> int:
    # An ASCII string knows that it is one; only the others are encoded to be measured.
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _json_bytes(value: Any) -> int:
    """Add up a parsed JSON value without recursion, whose depth a client would choose."""
    total = 0
    pending = [value]
    while pending:
        item = pending.pop()
        kind = type(item)
        if kind is str:
            total += len(item) if item.isascii() else _text_bytes(item)
        elif kind is dict:
            pending.extend(item)
            pending.extend(item.values())
        elif kind is list or kind is tuple:
            pending.extend(item)
        else:
            total += _VALUE_BYTES
    return total
