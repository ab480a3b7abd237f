"""The chat routes: `/v1/chat/completions` and `/chat_tokenize`."""

from dataclasses import replace
from typing import Any

import orjson
from aiohttp import web

from llmshed.emulator.answering import generate_whole, read_body, unreadable
from llmshed.emulator.chat_asks import ChatAsk, ChatAsks, check_form, next_call_id
from llmshed.emulator.failures import TgiError, bad_tools, invalid, json_answer, openai_event
from llmshed.emulator.forms import ChatForm, FormError
from llmshed.emulator.gate import Gate
from llmshed.emulator.infer import Infer, OutputToken, Run
from llmshed.emulator.replica import Live, Replica
from llmshed.emulator.sse import EventStream
from llmshed.emulator.telling import logprobs_json, openai_reason, record_success, stream_headers, timings, usage_json
from llmshed.emulator.tool_stream import NoTool, ToolStream, cut_text, parse_call
from llmshed.emulator.wire import StreamErrors, UsageForm
from llmshed.errors import PromptError


class ChatRoutes:
    """Handlers of OpenAI's chat API as TGI speaks it."""

    def __init__(self, replica: Replica, infer: Infer) -> None:
        """Take what the handlers share."""
        self._replica = replica
        self._infer = infer
        self.asks = ChatAsks(replica, infer)

    async def completions(self, request: web.Request) -> web.StreamResponse:
        """Answer `POST /v1/chat/completions`."""
        form = await self._read(request)
        return form if isinstance(form, web.Response) else await self.answer(request, form)

    async def answer(self, request: web.Request, form: ChatForm) -> web.StreamResponse:
        """Answer a chat whose form was checked.

        Raises:
            TgiError: it is refused, or failed, before its answer began.
        """
        self._replica.metrics.count("tgi_request_count")
        with self._replica.request(request) as live:
            gate = Gate(self._replica.faults.meet(), request, self._replica.engine)
            chat = await self.asks.prepare(form)
            if form.stream:
                return await self._stream(request, form, chat, live, gate)
            await gate.before_answer()
            return await self._whole(form, chat, live, gate)

    async def tokenize(self, request: web.Request) -> web.StreamResponse:
        """Answer `POST /chat_tokenize`: the rendered chat and its tokens, without a permit."""
        form = await self._read(request)
        if isinstance(form, web.Response):
            return form
        self._replica.metrics.count("tgi_request_count")
        text = (await self.asks.prepare(form)).ask.inputs
        vocabulary = self._infer.vocabulary
        try:
            tokens = await self._infer.off_loop(lambda: vocabulary.tokens(text, add_special_tokens=False), len(text))
        except PromptError as error:
            raise invalid(f"tokenizer error {error}") from None
        return json_answer({"tokenize_response": tokens, "templated_text": text})

    async def _read(self, request: web.Request) -> ChatForm | web.Response:
        form = await read_body(request, ChatForm)
        if isinstance(form, web.Response):
            return form
        try:
            return self.checked(form)
        except FormError as error:
            return unreadable(str(error))

    def checked(self, form: ChatForm) -> ChatForm:
        """Return a form whose messages, tools and ceiling are checked too, as this version reads it.

        Raises:
            FormError: the text names the place.
        """
        check_form(form)
        return form.with_newer_ceiling() if self._replica.wire.takes_max_completion_tokens else form

    async def _whole(self, form: ChatForm, chat: ChatAsk, live: Live, gate: Gate) -> web.Response:
        whole = await generate_whole(self._replica, self._infer, chat.ask, live, gate)
        message: dict[str, Any] = {"role": "assistant", "content": whole.text}
        if chat.using_tools:
            call = parse_call(whole.text)
            if call is None:
                raise bad_tools(f"Failed to parse generated text: {cut_text(whole.text)}")
            if call[0] == "no_tool":
                chat = await self.asks.prepare_without_tools(form, chat)
                whole = await generate_whole(self._replica, self._infer, chat.ask, live, gate)
                message["content"] = whole.text
            else:
                message = {"role": "assistant", "tool_calls": [_tool_call(*call)]}
        choice = {
            "index": 0,
            "message": message,
            "logprobs": logprobs_json(whole.tokens) if form.logprobs else None,
            "finish_reason": openai_reason(self._replica, whole.ended.reason),
        }
        answer = self._envelope("chat.completion", form) | {
            "choices": [choice],
            "usage": usage_json(whole.run.input_tokens, whole.ended.output_tokens),
        }
        return json_answer(answer, headers=whole.headers)

    async def _stream(
        self, request: web.Request, form: ChatForm, chat: ChatAsk, live: Live, gate: Gate
    ) -> web.StreamResponse:
        headers = stream_headers(chat.ask.inputs)
        async with EventStream(self._replica, request, headers, gate) as stream:
            try:
                try:
                    await self._send(form, chat, live, gate, stream)
                except NoTool:
                    again = await self.asks.prepare_without_tools(form, chat)
                    await self._send(form, again, live, gate, stream)
            except TgiError as error:
                await self._send_error(stream, error)
            await stream.done()
        return stream.response

    async def _send(self, form: ChatForm, chat: ChatAsk, live: Live, gate: Gate, stream: EventStream) -> None:
        self._replica.metrics.count("tgi_request_count")
        run = await self._infer.start(chat.ask, live, refused=gate.refused)
        tools = ToolStream() if chat.using_tools else None
        ended = None
        while ended is None:
            token = await stream.during(run.next)
            try:
                delta = _delta(token, tools, next_call_id(form))
            except NoTool:
                self._replica.engine.leave(run.key)
                raise
            ended = token.ended
            if ended is not None:
                record_success(self._replica, timings(run, ended, self._replica.clock.now()), ended)
            if delta is not None:
                await stream.event(self._chunk(form, run, token, delta))
            if ended is not None and form.stream_options.include_usage:
                await self._send_usage(form, run, token, stream)

    async def _send_usage(self, form: ChatForm, run: Run, token: OutputToken, stream: EventStream) -> None:
        if self._replica.wire.usage is UsageForm.OWN_CHUNK:
            usage = usage_json(run.input_tokens, token.index)
            await stream.event(self._envelope("chat.completion.chunk", form) | {"choices": [], "usage": usage})

    async def _send_error(self, stream: EventStream, error: TgiError) -> None:
        wire = self._replica.wire
        if wire.drops_chat_errors:
            return
        await stream.event(openai_event(error) if wire.stream_errors is StreamErrors.OPENAI else error.envelope)

    def _chunk(self, form: ChatForm, run: Run, token: OutputToken, delta: dict[str, Any]) -> dict[str, Any]:
        ended, wire = token.ended, self._replica.wire
        choice = {
            "index": 0,
            "delta": delta,
            "logprobs": logprobs_json([_as_told(token, delta)]) if form.logprobs else None,
            "finish_reason": None if ended is None else openai_reason(self._replica, ended.reason),
        }
        chunk = self._envelope("chat.completion.chunk", form) | {"choices": [choice]}
        if wire.usage is UsageForm.NEVER:
            return chunk
        inline = ended is not None and wire.usage is UsageForm.IN_LAST_CHUNK and form.stream_options.include_usage
        return chunk | {"usage": usage_json(run.input_tokens, token.index) if inline else None}

    def _envelope(self, kind: str, form: ChatForm) -> dict[str, Any]:
        model = self._replica.settings.model_id
        if self._replica.wire.names_requested_model and form.model not in {None, "tgi"}:
            model = str(form.model)
        return {
            "object": kind,
            "id": "",
            "created": self._replica.created,
            "model": model,
            "system_fingerprint": self._replica.fingerprint,
        }


def _delta(token: OutputToken, tools: ToolStream | None, call_id: str) -> dict[str, Any] | None:
    """Return the delta of a token; None when a tool call has nothing to tell with it."""
    if tools is None:
        return {"role": "assistant", "content": "" if token.piece.special else token.piece.text}
    function = tools.push(token.piece.text)
    if function is None:
        return None
    return {"role": "assistant", "tool_calls": [{"index": 0, "id": call_id, "type": "function", "function": function}]}


def _as_told(token: OutputToken, delta: dict[str, Any]) -> OutputToken:
    """Return a token with the text that its delta tells: of a tool call that may be another than the model's."""
    if "tool_calls" not in delta:
        return token
    return replace(token, piece=replace(token.piece, text=delta["tool_calls"][0]["function"]["arguments"]))


def _tool_call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"description": None, "name": name, "arguments": orjson.dumps(arguments).decode()}
    return {"id": "0", "type": "function", "function": function}
