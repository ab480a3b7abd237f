"""The forms of a text completion's prompt: a string, a list of them, and token ids where an engine takes ids."""

from typing import Any, Final

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError
from llmshed.engines.fields import INT32_MAX, malformed
from llmshed.tokenizing.prompts import IdsPrompt, Prompt, TextPrompt

MAX_PROMPTS: Final = 1024
_ACCEPTED: Final = "a string or a list of strings that are not empty"


def read_prompts(value: Any, param: str, *, takes_token_ids: bool, engine: str) -> tuple[Prompt, ...]:
    """Read a `prompt` in any of OpenAI's four forms: text, texts, token ids, lists of token ids.

    Args:
        value: the field as parsed.
        param: its name, for errors.
        takes_token_ids: whether the engine takes prompts as ids; otherwise they are refused as such.
        engine: the engine's name, for errors.

    Raises:
        BodyError: `malformed` for no form at all, or for an empty prompt; `unsupported_field` for ids that the engine
            does not take.
    """
    items = [value] if type(value) is str else value
    if type(items) is not list or not items:
        raise malformed(param, _ACCEPTED, value)
    if all(type(item) is str for item in items):
        return tuple(TextPrompt(_filled(text, param)) for text in _bounded(items, param))
    if all(_is_id(item) for item in items):
        items = [items]  # one prompt of ids
    elif not all(type(item) is list and item and all(map(_is_id, item)) for item in items):
        raise malformed(param, _ACCEPTED, value)
    if not takes_token_ids:
        text = f"`{param}` holds token ids, which {engine} does not take; send the text"
        raise BodyError(Reason.UNSUPPORTED_FIELD, text, param)
    return tuple(IdsPrompt(tuple(ids)) for ids in _bounded(items, param))


def _is_id(item: Any) -> bool:
    return type(item) is int and 0 <= item <= INT32_MAX


def _filled(text: str, param: str) -> str:
    if not text:
        raise malformed(param, _ACCEPTED, text)
    return text


def _bounded(items: list[Any], param: str) -> list[Any]:
    if len(items) > MAX_PROMPTS:
        text = f"`{param}` holds {len(items):,} prompts; a request may hold {MAX_PROMPTS:,}"
        raise BodyError(Reason.MALFORMED, text, param)
    return items
