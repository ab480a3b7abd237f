"""From a chat body to what is generated: rendering, tools, grammars, parameters (`try_into_generate`)."""

import re
import uuid
import zlib
from dataclasses import dataclass, replace
from typing import Any

from llmshed.emulator.failures import bad_template, bad_tools
from llmshed.emulator.forms import ChatForm, FormError, Parameters
from llmshed.emulator.infer import Ask, Infer
from llmshed.emulator.replica import Replica
from llmshed.emulator.schema_text import grammar_text, tool_text
from llmshed.errors import PromptError
from llmshed.tokenizing.prompts import ChatPrompt
from llmshed.tokenizing.tgi_messages import flatten, tools_in_use

_WORDS = ("none", "auto", "required")
_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class ChatAsk:
    """What a chat request generates; `using_tools` when its output is forced to be a call."""

    ask: Ask
    using_tools: bool


class ChatAsks:
    """Prepares chat requests."""

    def __init__(self, replica: Replica, infer: Infer) -> None:
        """Take what the handlers share."""
        self._replica = replica
        self._infer = infer

    async def prepare(self, form: ChatForm) -> ChatAsk:
        """Render a chat and fill in its parameters.

        Raises:
            TgiError: the template or the tools cannot be used.
        """
        if form.response_format is not None and form.tools is not None:
            raise bad_tools("Grammar and tools are mutually exclusive")
        tools = None if form.response_format is not None else _tools(form)
        text = await self._render(form, tools)
        default = self._replica.settings.parameters.rules.default_output_tokens
        asked = default if form.max_tokens is None else form.max_tokens
        # Which of its tools the model calls is settled by the text, so that `auto` sometimes picks `no_tool` and
        # TGI's second generation happens.
        picked = tools[zlib.crc32(text.encode()) % len(tools)] if tools else None
        spelled = grammar_text(form.response_format) if picked is None else tool_text(picked)
        ask = Ask(text, _parameters(form, asked), add_special_tokens=False, spelled=spelled)
        return ChatAsk(ask, using_tools=bool(tools))

    async def prepare_without_tools(self, form: ChatForm, chat: ChatAsk) -> ChatAsk:
        """Return the second generation of a chat whose model picked `no_tool`.

        Raises:
            TgiError: the template refuses the messages without tools.
        """
        text = await self._render(form, None)
        return ChatAsk(replace(chat.ask, inputs=text, spelled=None), using_tools=False)

    async def _render(self, form: ChatForm, tools: list[dict[str, Any]] | None) -> str:
        prompt = ChatPrompt(form.messages)
        if tools is not None:
            prompt = ChatPrompt(form.messages, form.tools, form.tool_choice, form.tool_prompt or None)
        size = sum(len(str(message.get("content"))) for message in form.messages)
        try:
            return await self._infer.off_loop(lambda: self._infer.vocabulary.render(prompt), size)
        except PromptError as error:
            if self._infer.vocabulary.has_template:  # TGI counts a template that fails, and not one that is missing
                self._replica.metrics.count("tgi_request_failure", ("err", "template"))
            raise bad_template(str(error)) from None


def check_form(form: ChatForm) -> None:
    """Check what serde checks inside messages, tools and their choice.

    Raises:
        FormError: the text names the place.
    """
    match form.tool_choice:
        case None | str() | {"type": "function", "function": {"name": str()}}:
            pass
        case _:
            raise FormError("tool_choice: data did not match any variant of untagged enum ToolTypeDeserializer")
    try:
        flatten(form.messages)
        tools_in_use(ChatPrompt(form.messages, form.tools, "required"))
    except PromptError as error:
        raise FormError(str(error)) from None


def next_call_id(form: ChatForm) -> str:
    """Return the id of a streamed tool call: one above the largest of the conversation, which are numbers in TGI.

    Where one is not, TGI draws a random UUID; here it is always the same for the same ids.
    """
    calls = [call for message in form.messages if message.get("content") is None for call in _calls(message)]
    given = [str(call.get("id")) for call in calls]
    if all(_NUMBER.fullmatch(text) for text in given):
        return str(max((int(text) + 1 for text in given), default=0))
    return str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(given)))


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = message.get("tool_calls") or []
    return calls


def _tools(form: ChatForm) -> list[dict[str, Any]] | None:
    match form.tool_choice:
        case str(name) | {"function": {"name": str(name)}} if isinstance(form.tool_choice, dict) or name not in _WORDS:
            if form.tools is not None and all(tool["function"]["name"] != name for tool in form.tools):
                raise bad_tools(f"Tool with name {name} not found")
        case _:
            pass
    try:
        return tools_in_use(ChatPrompt(form.messages, form.tools, form.tool_choice))
    except PromptError as error:
        raise bad_tools(str(error)) from None


def _parameters(form: ChatForm, asked: int | None) -> Parameters:
    greedy = form.temperature == 0
    return Parameters(
        temperature=None if greedy else form.temperature,
        repetition_penalty=None if form.presence_penalty is None else form.presence_penalty + 2.0,
        frequency_penalty=form.frequency_penalty,
        top_p=form.top_p,
        do_sample=not greedy,
        max_new_tokens=asked,
        stop=form.stop or [],
        details=True,
        seed=form.seed,
        top_n_tokens=form.top_logprobs,
        grammar=form.response_format,
    )
