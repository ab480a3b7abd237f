"""Images in prompts: found and taken out, so that a picture's base64 is never tokenized as if it were text.

An image costs what the model makes of its size, which only the engine knows. Two ways are open to the caller: give the
counter a bound per image (`image_tokens`), which is added for each one while the text around them is counted exactly;
or ask the engine to count prompts with images.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from llmshed.tokenizing.prompts import ChatPrompt

_OPEN, _CLOSE = "![](", ")"

_IMAGE_PARTS = frozenset({"image_url", "input_image", "image"})


class ImagesApart(NamedTuple):
    """Text cut at its image marks: the texts around them, and how many there were."""

    texts: list[str]
    images: int


def cut_at_images(text: str) -> ImagesApart:
    r"""Cut a text where TGI finds images, which is by the expression `!\[\]\([^\)]*\)` (router/src/validation.rs).

    There is one text more than there are images. The search is linear; as an expression in Python it would not be,
    on a text of nothing but openings.
    """
    texts, begin = [], 0
    while (place := text.find(_OPEN, begin)) >= 0:
        end = text.find(_CLOSE, place + len(_OPEN))
        if end < 0:
            break
        texts.append(text[begin:place])
        begin = end + len(_CLOSE)
    return ImagesApart([*texts, text[begin:]], len(texts))


def image_parts(prompt: ChatPrompt) -> int:
    """Return how many parts of the messages are images."""
    return sum(_is_image(part) for message in prompt.messages for part in _parts(message.get("content")))


def _parts(content: Any) -> list[Mapping[str, Any]]:
    if not isinstance(content, Sequence) or isinstance(content, str):
        return []
    return [part for part in content if isinstance(part, Mapping)]


def _is_image(part: Mapping[str, Any]) -> bool:
    return part.get("type") in _IMAGE_PARTS if isinstance(part.get("type"), str) else False
