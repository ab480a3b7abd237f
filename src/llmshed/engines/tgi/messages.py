"""The messages of a chat request, held to the forms that Text Generation Inference reads."""

from collections.abc import Mapping
from typing import Any, Final

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError
from llmshed.engines.fields import kept_fields, malformed, missing, shown, take_fields
from llmshed.engines.tgi.fields import IMAGE_PART_FIELDS, IMAGE_URL_FIELDS, MESSAGE_FIELDS, TEXT_PART_FIELDS

_SCHEMES: Final = ("http://", "https://", "data:")
_URL: Final = "a URL that begins with http://, https:// or data:"
_CONTENT: Final = "a string or a list of parts"


def read_messages(messages: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages as they are rendered and forwarded: without nulls and what TGI leaves out.

    Raises:
        BodyError: a message, or a part of one, of a form that TGI has no reading for; `param` is its path.
    """
    return [_message(message, f"messages[{place}]") for place, message in enumerate(messages)]


def _message(message: Mapping[str, Any], path: str) -> dict[str, Any]:
    taken = kept_fields(MESSAGE_FIELDS, take_fields(MESSAGE_FIELDS, message, f"{path}."))
    if "role" not in taken:
        raise missing(f"{path}.role", "a string")
    content = taken.get("content")
    if content is None:
        if "tool_calls" not in taken:
            raise missing(f"{path}.content", f"{_CONTENT}, unless the message holds tool_calls")
    elif isinstance(content, list):
        taken["content"] = [_part(part, f"{path}.content[{place}]") for place, part in enumerate(content)]
    elif not isinstance(content, str):
        raise malformed(f"{path}.content", _CONTENT, content)
    return taken


def _part(part: Any, path: str) -> dict[str, Any]:
    if not isinstance(part, dict):
        raise malformed(path, "an object with a type", part)
    match part.get("type"):
        case "text":
            taken = kept_fields(TEXT_PART_FIELDS, take_fields(TEXT_PART_FIELDS, part, f"{path}."))
            if "text" not in taken:
                raise missing(f"{path}.text", "a string")
            return taken
        case "image_url":
            return _image_part(part, path)
        case None:
            raise missing(f"{path}.type", "`text` or `image_url`")
        case str() as kind:
            text = f"`{path}` is a part of type {shown(kind)}; TGI takes `text` and `image_url`"
            raise BodyError(Reason.UNSUPPORTED_FIELD, text, f"{path}.type")
        case other:
            raise malformed(f"{path}.type", "`text` or `image_url`", other)


def _image_part(part: dict[str, Any], path: str) -> dict[str, Any]:
    taken = kept_fields(IMAGE_PART_FIELDS, take_fields(IMAGE_PART_FIELDS, part, f"{path}."))
    if "image_url" not in taken:
        raise missing(f"{path}.image_url", "an object with a url")
    image = kept_fields(IMAGE_URL_FIELDS, take_fields(IMAGE_URL_FIELDS, taken["image_url"], f"{path}.image_url."))
    url = image.get("url")
    if url is None:
        raise missing(f"{path}.image_url.url", _URL)
    if not url.startswith(_SCHEMES):
        raise malformed(f"{path}.image_url.url", _URL, url)
    return {**taken, "image_url": image}
