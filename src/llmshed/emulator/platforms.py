"""The routes by which SageMaker and Vertex AI call TGI: `/invocations` and `/vertex`."""

import asyncio
from typing import Any, TypeVar

from aiohttp import web

from llmshed.emulator.answering import generate_whole, read_body, read_json, unreadable
from llmshed.emulator.chat import ChatRoutes
from llmshed.emulator.completions import CompletionRoutes
from llmshed.emulator.failures import TgiError, json_answer
from llmshed.emulator.forms import (
    ChatForm,
    CompletionForm,
    Form,
    FormError,
    GenerateForm,
    Parameters,
    VertexForm,
    VertexInstance,
    read_form,
)
from llmshed.emulator.gate import Gate
from llmshed.emulator.infer import Ask, Infer
from llmshed.emulator.native import NativeRoutes, with_default_ceiling
from llmshed.emulator.replica import Live, Replica

F = TypeVar("F", bound=Form)
_NO_VARIANT = "data did not match any variant of untagged enum"


class PlatformRoutes:
    """Handlers that read a body by what it can be, and hand it to the other routes."""

    def __init__(
        self, replica: Replica, infer: Infer, native: NativeRoutes, chat: ChatRoutes, completions: CompletionRoutes
    ) -> None:
        """Take what the handlers share, and the routes that answer."""
        self._replica = replica
        self._infer = infer
        self._native = native
        self._chat = chat
        self._completions = completions

    async def invocations(self, request: web.Request) -> web.StreamResponse:
        """Answer `POST /invocations`: the first of native, chat and completion that the body can be."""
        if not self._replica.wire.invocations_by_form:
            return await self._native.root(request)
        body = await read_json(request)
        if isinstance(body, web.Response):
            return body
        if (native := _read(GenerateForm, body)) is not None:
            return await self._native.answer(request, native)
        if (chat := self._read_chat(body)) is not None:
            return await self._chat.answer(request, chat)
        if (completion := _read(CompletionForm, body)) is not None:
            return await self._completions.answer(request, completion)
        return unreadable(f"{_NO_VARIANT} SagemakerRequest")

    async def vertex(self, request: web.Request) -> web.StreamResponse:
        """Answer `POST /vertex`: one text an instance; whatever fails once it generates is one and the same 500."""
        form = await read_body(request, VertexForm)
        if isinstance(form, web.Response):
            return form
        instances = []
        for place, body in enumerate(form.instances):
            instance = self._read_instance(body)
            if instance is None:
                return unreadable(f"instances[{place}]: {_NO_VARIANT} VertexInstance")
            instances.append(instance)
        self._replica.metrics.count("tgi_request_count")
        if not instances:
            raise TgiError(422, "Input validation error", "Input validation error")
        with self._replica.request(request) as live:
            gate = Gate(self._replica.faults.meet(), request, self._replica.engine)
            asks = [await self._ask(instance) for instance in instances]
            await gate.before_answer()
            return json_answer({"predictions": await self._predict(asks, live, gate)})

    async def _predict(self, asks: list[Ask], live: Live, gate: Gate) -> list[str]:
        results = await asyncio.gather(
            *(generate_whole(self._replica, self._infer, ask, live, gate) for ask in asks), return_exceptions=True
        )
        texts = []
        for result in results:
            if isinstance(result, TgiError):
                raise TgiError(500, "Incomplete generation", "Incomplete generation") from None
            if isinstance(result, BaseException):
                raise result
            texts.append(result.text)
        return texts

    async def _ask(self, instance: VertexInstance | ChatForm) -> Ask:
        if isinstance(instance, ChatForm):
            return (await self._chat.asks.prepare(instance)).ask
        # Of the instance's own parameters only these two are used.
        seed = ceiling = None
        if instance.parameters is not None:
            seed = instance.parameters.seed
            ceiling = with_default_ceiling(self._replica, instance.parameters).max_new_tokens
        parameters = Parameters(
            do_sample=True, details=True, decoder_input_details=True, seed=seed, max_new_tokens=ceiling
        )
        return Ask(instance.inputs, parameters)

    def _read_instance(self, body: Any) -> VertexInstance | ChatForm | None:
        native = _read(VertexInstance, body)
        if native is not None or not self._replica.wire.vertex_chats:
            return native
        return self._read_chat(body)

    def _read_chat(self, body: Any) -> ChatForm | None:
        try:
            return self._chat.checked(read_form(ChatForm, body))
        except FormError:
            return None


def _read(form: type[F], body: Any) -> F | None:
    try:
        return read_form(form, body)
    except FormError:
        return None
