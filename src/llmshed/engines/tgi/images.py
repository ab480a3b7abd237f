"""Images in prompts of Text Generation Inference: `![](...)` marks, as written or as its chat route makes them.

A model with image input replaces each mark by as many tokens as the image needs; any other model reads a mark as text.
The gateway never fetches an image, so a call says how many its prompts may hold: they are counted with the pool's bound
for each, or by the engine.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from llmshed.tokenizing.images import cut_at_images
from llmshed.tokenizing.prompts import ChatPrompt, IdsPrompt, Prompt, TextPrompt

_OPEN: Final = "![]("


def count_images(prompt: Prompt) -> int:
    """Return the most images that the engine can find in a prompt.

    Exact for plain text. In a chat a mark that a message leaves open may be closed by what the template writes after
    it, so it is counted; marks in tools and tool calls count too, since they are written into the prompt.
    """
    match prompt:
        case TextPrompt():
            return cut_at_images(prompt.text).images
        case ChatPrompt():
            return sum(map(_count_in_chat, _chat_texts(prompt)))
        case IdsPrompt():
            return 0


def _count_in_chat(text: str) -> int:
    apart = cut_at_images(text)
    return apart.images + (_OPEN in apart.texts[-1])


def _chat_texts(prompt: ChatPrompt) -> Iterator[str]:
    """Return the texts of a chat that the template may write into the prompt."""
    for message in prompt.messages:
        content = message.get("content")
        yield orjson.dumps(message.get("tool_calls")).decode() if content is None else _flat(content)
    if prompt.tools:
        yield orjson.dumps(prompt.tools).decode()
    yield prompt.tool_prompt or ""


def _flat(content: str | list[Mapping[str, Any]]) -> str:
    """Join the parts of a message as TGI does, so that a mark put together from several is found."""
    if isinstance(content, str):
        return content
    return "".join(
        part["text"] if part["type"] == "text" else f"{_OPEN}{part['image_url']['url']})" for part in content
    )
