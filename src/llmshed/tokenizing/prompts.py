"""The forms that a prompt comes in, as an engine adapter hands them over to be counted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """Plain text; `add_special_tokens` says whether the engine puts its BOS or EOS around it."""

    text: str
    add_special_tokens: bool = True


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A message list in the wire form of OpenAI's chat route, rendered by the engine's chat template.

    Args:
        messages: parsed message objects, key order kept.
        tools: parsed tool objects; None when the request offers none.
        tool_choice: `auto`, `none`, `required`, a function object, or None when the request does not say.
        tool_prompt: TGI's text before the tools; None for its default.
        template_kwargs: extra variables of the template, for engines that take them.
    """

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None = None
    tool_choice: Any = None
    tool_prompt: str | None = None
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IdsPrompt:
    """A prompt that came as token ids, so that its count is its length."""

    ids: tuple[int, ...]


Prompt = TextPrompt | ChatPrompt | IdsPrompt


@dataclass(frozen=True, slots=True)
class PromptCount:
    """What counting a prompt found.

    Args:
        tokens: input tokens, as the engine counts them.
        rendered_bytes: UTF-8 bytes of the rendered text; 0 for token ids.
        blocks: keyed hashes of the leading blocks of the rendered text, each chained to the one before it.
        is_bound: whether `tokens` is only what was proved when counting ended early; the prompt has as many at least.
    """

    tokens: int
    rendered_bytes: int
    blocks: tuple[str, ...] = ()
    is_bound: bool = False
