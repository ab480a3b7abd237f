r"""Images in prompts of Text Generation Inference: `![](...)` marks, as written or as its chat route makes them.

A model with image input replaces each mark by as many tokens as the image needs; any other model reads a mark as text.
The gateway never fetches an image, so it counts the prompt without its marks and adds a bound for each image, or asks
the engine. A mark ends at the first closing bracket, whatever stands between (TGI's pattern `!\[\]\([^\)]*\)`). It is
found here by plain search, since Python's pattern matching would be quadratic in marks that nothing closes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from llmshed.tokenizing.prompts import ChatPrompt, IdsPrompt, Prompt, TextPrompt

_OPEN: Final = "![]("
_CLOSE: Final = ")"


def count_images(prompt: Prompt) -> int:
    """Return the most images that the engine can find in a prompt.

    Exact for plain text. In a chat a mark that a message leaves open may be closed by what the template writes after
    it, so it is counted; marks in tools and tool calls count too, since they are written into the prompt.
    """
    match prompt:
        case TextPrompt():
            return sum(1 for _ in _marks(prompt.text))
        case ChatPrompt():
            return sum(map(_count_in_chat, _chat_texts(prompt)))
        case IdsPrompt():
            return 0


def without_images(prompt: Prompt) -> Prompt:
    """Return the prompt with nothing where its images stood, so that base64 is not counted as text."""
    match prompt:
        case TextPrompt():
            return replace(prompt, text=_without_marks(prompt.text))
        case ChatPrompt():
            return replace(prompt, messages=[_message_without_marks(message) for message in prompt.messages])
        case IdsPrompt():
            return prompt


def flat_content(content: str | list[Mapping[str, Any]]) -> str:
    """Return the content of a message as TGI's chat route hands it to the template: one string, images as marks."""
    if isinstance(content, str):
        return content
    return "".join(
        part["text"] if part["type"] == "text" else f"{_OPEN}{part['image_url']['url']}{_CLOSE}" for part in content
    )


def _marks(text: str) -> Iterator[tuple[int, int]]:
    """Find the marks, as start and end of each."""
    start = text.find(_OPEN)
    while start >= 0:
        end = text.find(_CLOSE, start)
        if end < 0:
            return
        yield start, end + 1
        start = text.find(_OPEN, end)


def _without_marks(text: str) -> str:
    kept = []
    after = 0
    for start, end in _marks(text):
        kept.append(text[after:start])
        after = end
    kept.append(text[after:])
    return "".join(kept)


def _count_in_chat(text: str) -> int:
    images = 0
    after = 0
    for _, end in _marks(text):
        images += 1
        after = end
    return images + (text.find(_OPEN, after) >= 0)


def _chat_texts(prompt: ChatPrompt) -> Iterator[str]:
    """Return the texts of a chat that the template may write into the prompt."""
    for message in prompt.messages:
        content = message.get("content")
        yield orjson.dumps(message.get("tool_calls")).decode() if content is None else flat_content(content)
    if prompt.tools:
        yield orjson.dumps(prompt.tools).decode()
    yield prompt.tool_prompt or ""


def _message_without_marks(message: Mapping[str, Any]) -> Mapping[str, Any]:
    content = message.get("content")
    return message if content is None else {**message, "content": _without_marks(flat_content(content))}
