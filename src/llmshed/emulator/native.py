"""The native routes: `/`, `/generate`, `/generate_stream` and `/tokenize`."""

from typing import Any

from aiohttp import web

from llmshed.emulator.answering import Collected, Whole, collect, finish, generate_whole, read_body
from llmshed.emulator.checks import check_best_of, check_streamed
from llmshed.emulator.failures import TgiError, incomplete, invalid, json_answer
from llmshed.emulator.forms import GenerateForm, Parameters
from llmshed.emulator.gate import Gate
from llmshed.emulator.infer import Ask, Infer, OutputToken, Run
from llmshed.emulator.replica import Live, Replica
from llmshed.emulator.schema_text import grammar_text
from llmshed.emulator.sse import EventStream
from llmshed.emulator.telling import record_success, stream_headers, timings, token_json, tokens_json
from llmshed.emulator.writing import made_up_logprob
from llmshed.errors import PromptError


class NativeRoutes:
    """Handlers of TGI's own API."""

    def __init__(self, replica: Replica, infer: Infer) -> None:
        """Take what the handlers share."""
        self._replica = replica
        self._infer = infer

    async def root(self, request: web.Request) -> web.StreamResponse:
        """Answer `POST /`: an array of one, or a stream when the body asks for it; the prompt repeated by default."""
        form = await read_body(request, GenerateForm)
        return form if isinstance(form, web.Response) else await self.answer(request, form)

    async def answer(self, request: web.Request, form: GenerateForm) -> web.StreamResponse:
        """Answer a body of `POST /`.

        Raises:
            TgiError: it is refused, or failed, before its answer began.
        """
        if form.parameters.return_full_text is None:
            full = form.parameters.model_copy(update={"return_full_text": True})
            form = form.model_copy(update={"parameters": full})
        if form.stream:
            return await self._stream(request, form)
        return await self._whole(request, form, as_list=True)

    async def generate(self, request: web.Request) -> web.StreamResponse:
        """Answer `POST /generate`."""
        form = await read_body(request, GenerateForm)
        return form if isinstance(form, web.Response) else await self._whole(request, form, as_list=False)

    async def generate_stream(self, request: web.Request) -> web.StreamResponse:
        """Answer `POST /generate_stream`."""
        form = await read_body(request, GenerateForm)
        return form if isinstance(form, web.Response) else await self._stream(request, form)

    async def tokenize(self, request: web.Request) -> web.StreamResponse:
        """Answer `POST /tokenize`: no permit, no limits, `truncate` ignored."""
        form = await read_body(request, GenerateForm)
        if isinstance(form, web.Response):
            return form
        inputs, vocabulary = form.inputs, self._infer.vocabulary
        try:
            tokens = await self._infer.off_loop(lambda: vocabulary.tokens(inputs, add_special_tokens=True), len(inputs))
        except PromptError as error:
            raise invalid(f"tokenizer error {error}") from None
        return json_answer(tokens)

    async def _whole(self, request: web.Request, form: GenerateForm, *, as_list: bool) -> web.Response:
        with self._replica.request(request) as live:
            gate = Gate(self._replica.faults.meet(), request, self._replica.engine)
            await gate.before_answer()
            best, others = await self._best(form, live, gate)
        value: dict[str, Any] = {"generated_text": _full_text(form, best.text)}
        if form.parameters.details or form.parameters.decoder_input_details:
            value["details"] = _details(form, best, others, self._prefill(form))
        return json_answer([value] if as_list else value, headers=best.headers)

    def _prefill(self, form: GenerateForm) -> list[dict[str, Any]]:
        """Return the prompt's tokens where this version tells them; the first has no log probability."""
        if not (form.parameters.decoder_input_details and self._replica.wire.prefill_details):
            return []
        pieces = self._infer.vocabulary.prompt_pieces(form.inputs)[-(form.parameters.truncate or 0) :]
        return [
            {"id": piece.token_id, "text": piece.text, "logprob": None if place == 0 else made_up_logprob(place)}
            for place, piece in enumerate(pieces)
        ]

    async def _best(self, form: GenerateForm, live: Live, gate: Gate) -> tuple[Whole, list[Collected]]:
        """Run all copies side by side; the one with the best mean log probability is the answer."""
        parameters = with_default_ceiling(self._replica, form.parameters)
        copies = parameters.best_of or 1
        if copies <= 1:
            return await generate_whole(self._replica, self._infer, native_ask(form.inputs, parameters), live, gate), []
        self._replica.metrics.count("tgi_request_count")
        check_best_of(copies, self._replica.settings.parameters)
        asks = [native_ask(form.inputs, parameters, copy) for copy in range(copies)]
        admitted = [self._infer.admit(ask, live, refused=gate.refused) for ask in asks]
        runs = [await self._infer.submit(one) for one in admitted]
        ended = [await collect(run, gate) for run in runs]
        best = max(ended, key=lambda one: one.mean_logprob)
        # One success is counted, of the best; the others leave no trace in the metrics.
        return finish(self._replica, best), [one for one in ended if one is not best]

    async def _stream(self, request: web.Request, form: GenerateForm) -> web.StreamResponse:
        self._replica.metrics.count("tgi_request_count")
        with self._replica.request(request) as live:
            gate = Gate(self._replica.faults.meet(), request, self._replica.engine)
            async with EventStream(self._replica, request, stream_headers(form.inputs), gate) as stream:
                try:
                    check_streamed(form.parameters)
                except TgiError as error:
                    await self._refuse(error, stream)
                else:
                    await self._send_or_fail(form, live, gate, stream)
        return stream.response

    async def _refuse(self, error: TgiError, stream: EventStream) -> None:
        """Tell that these parameters have no stream; TGI then finds that the stream had no end, and tells that too."""
        for told in (error, incomplete(*self._replica.wire.incomplete_stream)):
            self._replica.metrics.count("tgi_request_failure", ("err", str(told.metric)))
            await stream.event(told.envelope)

    async def _send_or_fail(self, form: GenerateForm, live: Live, gate: Gate, stream: EventStream) -> None:
        try:
            await self._send(form, live, gate, stream)
        except TgiError as error:
            await stream.event(error.envelope)

    async def _send(self, form: GenerateForm, live: Live, gate: Gate, stream: EventStream) -> None:
        parameters = with_default_ceiling(self._replica, form.parameters)
        run = await self._infer.start(native_ask(form.inputs, parameters), live, refused=gate.refused)
        ended = None
        while ended is None:
            token = await stream.during(run.next)
            await stream.event(self._event(form, run, token))
            ended = token.ended

    def _event(self, form: GenerateForm, run: Run, token: OutputToken) -> dict[str, Any]:
        event: dict[str, Any] = {"index": token.index, "token": token_json(token.piece, token.logprob)}
        if token.top:
            event["top_tokens"] = tokens_json(token)
        event |= {"generated_text": None, "details": None}
        if token.ended is None:
            return event
        record_success(self._replica, timings(run, token.ended, self._replica.clock.now()), token.ended)
        event["generated_text"] = _full_text(form, run.text(token.index))
        if form.parameters.details:
            event["details"] = {
                "finish_reason": token.ended.reason.value,
                "generated_tokens": token.ended.output_tokens,
                "seed": run.seed,
            }
            if self._replica.wire.input_length_in_details:
                event["details"]["input_length"] = run.input_tokens
        return event


def with_default_ceiling(replica: Replica, parameters: Parameters) -> Parameters:
    """Put in the ceiling that versions before 3.0 give a native request without one; null stands for none there too."""
    default = replica.settings.parameters.rules.default_output_tokens
    if default is None or "max_new_tokens" in parameters.model_fields_set:
        return parameters
    return parameters.model_copy(update={"max_new_tokens": default})


def native_ask(inputs: str, parameters: Parameters, copy: int = 0) -> Ask:
    """Return one sequence of a native request; its grammar is followed."""
    return Ask(inputs, parameters, copy=copy, spelled=grammar_text(parameters.grammar))


def _full_text(form: GenerateForm, text: str) -> str:
    return form.inputs + text if form.parameters.return_full_text else text


def _details(form: GenerateForm, best: Whole, others: list[Collected], prefill: list[dict[str, Any]]) -> dict[str, Any]:
    details = _sequence_details(best, prefill)
    if others:
        details["best_of_sequences"] = [
            {"generated_text": _full_text(form, whole.text), **_sequence_details(whole, prefill), **_top_tokens(whole)}
            for whole in others
        ]
    return details | _top_tokens(best)


def _sequence_details(whole: Collected, prefill: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "finish_reason": whole.ended.reason.value,
        "generated_tokens": whole.ended.output_tokens,
        "seed": whole.run.seed,
        "prefill": prefill,
        "tokens": [token_json(token.piece, token.logprob) for token in whole.tokens],
    }


def _top_tokens(whole: Collected) -> dict[str, Any]:
    return {"top_tokens": [tokens_json(token) for token in whole.tokens]} if whole.tokens[0].top else {}
