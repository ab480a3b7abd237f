"""Chats as TGI renders them (router/src/infer/chat_template.rs, 3.3): minijinja without trim_blocks and lstrip_blocks.

The binding must print as minijinja 2.8 does; pyproject.toml pins the versions that do.
"""

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any, Never

from minijinja import Environment, TemplateError

from llmshed.errors import PromptError, TokenizerError
from llmshed.tokenizing import serde_json
from llmshed.tokenizing.panics import panics_told
from llmshed.tokenizing.prompts import ChatPrompt
from llmshed.tokenizing.refusal import EndlessTemplateError, TemplateRefusal, failed, refused
from llmshed.tokenizing.tgi_messages import DEFAULT_TOOL_PROMPT, flatten, tools_in_use

# TGI's own patches of templates that minijinja cannot read, exact spellings only.
_PATCHES = (
    ("messages[0]['content'][0]['text']", "messages[0]['content']"),
    ("[::-1]", "|reverse"),
    ("{% generation %}", ""),
    ("{% endgeneration %}", ""),
)

# Rust's str::trim_end strips what Unicode calls White_Space; Python's rstrip would also take U+001C to U+001F.
_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"

_NAME = "chat"

_FUEL = 20_000
_FUEL_FOR_EACH = 300
_MOST_FUEL = 1_500_000
"""Steps of the template engine for a chat, more for each message and tool of it, and for any: up to 1 microsecond each.

Public templates take up to 70 steps for a message. A template whose loops run into each other would take minutes over a
chat of ten thousand messages."""
_OUT_OF_FUEL = "OutOfFuel"


class _Printed(dict[str, Any]):
    """A map that a template prints as TGI does: as minijinja prints its own, where the binding would use Python's."""

    __slots__ = ()

    def __repr__(self) -> str:
        values = {f"v{place}": _Printed(v) if isinstance(v, dict) else v for place, v in enumerate(self.values())}
        entries = (f"{serde_json.dumps(key)}: {name}" for key, name in zip(self, values, strict=True))
        # An environment of its own: one that is rendering, a shared one too, waits for itself when asked again.
        text: str = Environment().render_str("{{ {" + ", ".join(entries) + "} }}", **values)
        return text


class TgiRenderer:
    """A compiled chat template in TGI's environment; thread safe."""

    def __init__(
        self, template: str, *, bos_token: str | None, eos_token: str | None, local_time: Callable[[], datetime]
    ) -> None:
        """Compile the template.

        Raises:
            TokenizerError: minijinja cannot read the template; TGI would not start with it either.
        """
        for found, replacement in _PATCHES:
            template = template.replace(found, replacement)
        self._environment = Environment()
        self._environment.add_function("raise_exception", _raise_exception)
        self._environment.add_function("strftime_now", lambda form: local_time().strftime(form))
        try:
            self._environment.add_template(_NAME, template)
            # As in TGI, only the bare name counts: a template that knows no more than `tools.x` gets them appended.
            self._knows_tools = "tools" in self._environment.undeclared_variables_in_template(_NAME, nested=True)
        except TemplateError as error:
            raise TokenizerError(
                f"the chat template cannot be read by TGI's engine (line {error.line}): {error.detail or error.kind}"
            ) from None
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}
        # The binding holds a lock of its own while it renders. Waiting for that one would keep the interpreter's lock
        # and so never end when a function of the template needs it.
        self._lock = threading.Lock()

    def render(self, prompt: ChatPrompt) -> str:
        """Return the text that TGI tokenizes; `template_kwargs` have no way into TGI and are not looked at.

        Raises:
            PromptError: TGI refuses the form of the messages or tools, or the template refuses the messages.
        """
        tools = tools_in_use(prompt)
        messages = flatten(prompt.messages, "" if tools is None else self._tool_text(tools, prompt.tool_prompt))
        text = self._render(messages, tools)
        if messages and messages[-1]["role"] == "assistant":
            return _continued(text, messages[-1]["content"])
        return text

    def _tool_text(self, tools: list[dict[str, Any]], tool_prompt: str | None) -> str:
        listed = "" if self._knows_tools else f"{serde_json.dumps(tools)}\n"
        return f"\n---\n{listed}{tool_prompt or DEFAULT_TOOL_PROMPT}"

    def _render(self, messages: list[dict[str, str]], tools: list[dict[str, Any]] | None) -> str:
        try:
            with self._lock, panics_told("the chat template fails on these messages"):
                fuel = _FUEL + _FUEL_FOR_EACH * (len(messages) + len(tools or ()))
                self._environment.fuel = min(fuel, _MOST_FUEL)
                text: str = self._environment.render_template(
                    _NAME,
                    messages=[_Printed(message) for message in messages],
                    **self._tokens,
                    add_generation_prompt=True,
                    tools=None if tools is None else [_Printed(tool) for tool in tools],
                )
                return text
        except TemplateRefusal as error:
            raise refused(error) from None
        except TemplateError as error:
            if error.kind == _OUT_OF_FUEL:
                raise EndlessTemplateError from None
            raise failed(error.kind, error.line) from None
        except PromptError:
            raise
        except Exception as error:  # noqa: BLE001 - any Python error inside the template is a refusal of its messages
            raise failed(type(error).__name__, None) from None


def _continued(text: str, content: str) -> str:
    """Cut after the last assistant message, which TGI lets the model go on with."""
    place = text.rfind(content)
    return text if place < 0 else text[: place + len(content)].rstrip(_WHITE_SPACE)


def _raise_exception(message: object) -> Never:
    raise TemplateRefusal(str(message))
