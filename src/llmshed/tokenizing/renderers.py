"""The renderer of an engine for a chat template."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple, Self

from llmshed.clock import SystemClock
from llmshed.tokenizing.base import ChatRenderer
from llmshed.tokenizing.files import EngineName, TokenizerFiles


class TemplateOf(NamedTuple):
    """A chat template as one engine uses it; only plain values, so that it can be handed to another process.

    Args:
        engine: whose renderer it is for.
        source: name of the file that it stood in.
        text: its source text.
        tool_use: the template that is taken when tools are offered; None for the same.
        special_tokens: texts by names as `bos_token`, as this engine hands them to the template.
    """

    engine: EngineName
    source: str
    text: str
    tool_use: str | None
    special_tokens: Mapping[str, str]

    @classmethod
    def found(cls, files: TokenizerFiles, engine: EngineName) -> Self | None:
        """Return the template that this engine takes from a tokenizer's files; None where it finds none."""
        template = files.chat_template(engine)
        if template is None:
            return None
        tokens = dict(files.template_tokens(engine))
        return cls(engine, template.source, template.text, template.tool_use, tokens)


def local_time() -> datetime:
    """Return the machine's local time, which the engines' `strftime_now` tells templates."""
    return datetime.fromtimestamp(SystemClock().wall(), tz=UTC).astimezone()


def renderer(template: TemplateOf, now: Callable[[], datetime] = local_time) -> ChatRenderer:
    """Compile a template for its engine; `now` is the local time that it may write.

    Raises:
        TokenizerError: the engine cannot read the template.
    """
    tokens = template.special_tokens
    if template.engine == "tgi":
        # Imported late, as is the other: a process renders for one engine, and each engine costs its start.
        from llmshed.tokenizing.minijinja_tgi import TgiRenderer  # noqa: PLC0415 - see above

        return TgiRenderer(
            template.text, bos_token=tokens.get("bos_token"), eos_token=tokens.get("eos_token"), local_time=now
        )
    from llmshed.tokenizing.jinja_hf import HfRenderer  # noqa: PLC0415 - see above

    return HfRenderer(template.text, tool_use=template.tool_use, special_tokens=tokens, local_time=now)
