"""Chats as the transformers library, and with it vLLM and SGLang, renders them (utils/chat_template_utils.py, 4.57)."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Never

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError, TemplateSyntaxError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from llmshed.errors import TokenizerError
from llmshed.tokenizing.prompts import ChatPrompt
from llmshed.tokenizing.refusal import TemplateRefusal, failed, refused


class _Generation(Extension):
    """`{% generation %}` marks what a model is trained on; when rendering it is a scope and nothing more."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 reads this attribute of the class

    def parse(self, parser: Parser) -> nodes.Node:
        """Read the block and leave its body in place."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class HfRenderer:
    """A compiled chat template in the environment of the transformers library; thread safe."""

    def __init__(
        self,
        template: str,
        *,
        tool_use: str | None = None,
        special_tokens: Mapping[str, str],
        local_time: Callable[[], datetime],
    ) -> None:
        """Compile the template, and the one for requests with tools if there is another.

        Raises:
            TokenizerError: the template is no jinja2 template.
        """
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, loopcontrols],
            autoescape=False,  # prompts are text, not HTML; the engines do not escape either
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = lambda form: local_time().strftime(form)
        try:
            self._template = environment.from_string(template)
            self._tool_template = self._template if tool_use is None else environment.from_string(tool_use)
        except TemplateSyntaxError as error:
            raise TokenizerError(f"the chat template is no jinja2 template (line {error.lineno}): {error}") from None
        self._special_tokens = dict(special_tokens)

    def render(self, prompt: ChatPrompt) -> str:
        """Return the text that the engine tokenizes; messages and tools reach the template as they came.

        Raises:
            PromptError: the template refuses the messages or cannot take their form.
        """
        template = self._template if prompt.tools is None else self._tool_template
        variables = {
            **self._special_tokens,
            **prompt.template_kwargs,
            "messages": prompt.messages,
            "tools": prompt.tools,
            "documents": None,
            "add_generation_prompt": True,
        }
        try:
            return template.render(variables)
        except TemplateRefusal as error:
            raise refused(error) from None
        except SecurityError:
            raise failed("SecurityError", None) from None
        except TemplateError as error:
            raise failed(type(error).__name__, getattr(error, "lineno", None)) from None
        except Exception as error:  # noqa: BLE001 - a template runs any code; whatever it raises, it did not render
            raise failed(type(error).__name__, None) from None


def _tojson(
    value: Any,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 - templates call it with these names
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002 - as above
) -> str:
    """Write JSON without jinja2's own HTML escapes."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: object) -> Never:
    raise TemplateRefusal(str(message))
