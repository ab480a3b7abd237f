"""The route `/v1/completions`."""

from typing import Any

from aiohttp import web

from llmshed.emulator.answering import Whole, read_body, run_wholes, unreadable
from llmshed.emulator.failures import TgiError, json_answer, openai_event
from llmshed.emulator.forms import CompletionForm, Parameters
from llmshed.emulator.gate import Gate
from llmshed.emulator.infer import Admitted, Ask, Infer, OutputToken, Run
from llmshed.emulator.replica import Live, Replica
from llmshed.emulator.sse import EventStream
from llmshed.emulator.telling import (
    COMPUTE_TYPE,
    openai_reason,
    record_success,
    stream_headers,
    timings,
    usage_json,
)
from llmshed.emulator.wire import StreamErrors

_SUMMED = (
    "x-compute-characters",
    "x-total-time",
    "x-validation-time",
    "x-queue-time",
    "x-inference-time",
    "x-time-per-token",
    "x-prompt-tokens",
    "x-generated-tokens",
)


class CompletionRoutes:
    """Handlers of OpenAI's completions API as TGI speaks it."""

    def __init__(self, replica: Replica, infer: Infer) -> None:
        """Take what the handlers share."""
        self._replica = replica
        self._infer = infer

    async def completions(self, request: web.Request) -> web.StreamResponse:
        """Answer `POST /v1/completions`; each prompt of a list is a sequence of its own."""
        form = await read_body(request, CompletionForm)
        if isinstance(form, web.Response):
            return form
        if isinstance(form.prompt, list) and not self._replica.wire.prompt_lists:
            return unreadable("prompt: invalid type: sequence, expected a string at line 1 column 1")
        return await self.answer(request, form)

    async def answer(self, request: web.Request, form: CompletionForm) -> web.StreamResponse:
        """Answer a completion whose form was checked.

        Raises:
            TgiError: it is refused, or failed, before its answer began.
        """
        self._replica.metrics.count("tgi_request_count")
        asks = self._asks(form)
        with self._replica.request(request) as live:
            gate = Gate(self._replica.faults.meet(), request, self._replica.engine)
            if form.stream:
                return await self._stream(request, asks, live, gate)
            await gate.before_answer()
            return await self._whole(asks, live, gate)

    def _asks(self, form: CompletionForm) -> list[Ask]:
        if form.suffix is not None:
            raise self._invalid(
                "suffix not supported", "Suffix is not supported and can be achieved by preprocessing the prompt."
            )
        prompts = [form.prompt] if isinstance(form.prompt, str) else form.prompt
        most = self._replica.settings.parameters.max_client_batch_size
        if len(prompts) > most:
            raise self._invalid(
                "batch size exceeded", f"Number of prompts exceeds the maximum allowed batch size of {most}"
            )
        default = self._replica.settings.parameters.rules.default_output_tokens
        greedy = form.temperature == 0
        parameters = Parameters(
            temperature=None if greedy else form.temperature,
            repetition_penalty=form.repetition_penalty,
            frequency_penalty=form.frequency_penalty,
            top_p=form.top_p,
            do_sample=not greedy,
            max_new_tokens=default if form.max_tokens is None else form.max_tokens,
            stop=form.stop or [],
            details=True,
            decoder_input_details=not form.stream,
            seed=form.seed,
        )
        return [Ask(prompt, parameters, copy=place) for place, prompt in enumerate(prompts)]

    def _invalid(self, error_type: str, message: str) -> TgiError:
        self._replica.metrics.count("tgi_request_failure", ("err", "validation"))
        return TgiError(422, error_type, message)

    async def _whole(self, asks: list[Ask], live: Live, gate: Gate) -> web.Response:
        admitted = []
        for ask in asks:
            self._replica.metrics.count("tgi_request_count")
            admitted.append(self._infer.admit(ask, live, refused=gate.refused))
        runs = [await self._infer.submit(one) for one in admitted]
        places = await run_wholes(self._replica, runs, gate)
        wholes = [whole for _, whole in places]
        answer = self._envelope() | {
            "choices": [
                {
                    "index": place,
                    "text": whole.text,
                    "logprobs": None,
                    "finish_reason": openai_reason(self._replica, whole.ended.reason),
                }
                for place, whole in places
            ],
            "usage": usage_json(
                sum(whole.run.input_tokens for whole in wholes), sum(whole.ended.output_tokens for whole in wholes)
            ),
        }
        return json_answer(answer, headers=_summed_headers(wholes))

    async def _stream(self, request: web.Request, asks: list[Ask], live: Live, gate: Gate) -> web.StreamResponse:
        headers = stream_headers("".join(ask.inputs for ask in asks))
        async with EventStream(self._replica, request, headers, gate) as stream:
            try:
                await self._send(asks, live, gate, stream)
            except BaseException:
                # The prompts run apart from the connection, and find out only when they next send.
                for key in live.keys:
                    self._replica.engine.leave_at_next_token(key)
                live.keys.clear()
                raise
            await stream.done()
        return stream.response

    async def _send(self, asks: list[Ask], live: Live, gate: Gate, stream: EventStream) -> None:
        runs = await self._started(asks, live, gate)
        # TGI asks its streams in turn and waits for each, so that one that is queued holds up the others' events; an
        # error is the only event of its stream, and comes in its turn too.
        while runs:
            for place, run in list(runs.items()):
                try:
                    if isinstance(run, TgiError):
                        raise run
                    token = await stream.during(run.next)
                except TgiError as error:
                    await self._send_error(stream, error)
                    del runs[place]
                    continue
                await stream.event(self._chunk(place, run, token))
                if token.ended is not None:
                    del runs[place]

    async def _started(self, asks: list[Ask], live: Live, gate: Gate) -> dict[int, Run | TgiError]:
        """Start every prompt; where one is refused, its error stands for it."""
        admitted: dict[int, Admitted | TgiError] = {}
        for place, ask in enumerate(asks):
            self._replica.metrics.count("tgi_request_count")
            try:
                admitted[place] = self._infer.admit(ask, live, refused=gate.refused)
            except TgiError as error:
                admitted[place] = error
        started: dict[int, Run | TgiError] = {}
        for place, one in admitted.items():
            try:
                started[place] = one if isinstance(one, TgiError) else await self._infer.submit(one)
            except TgiError as error:
                started[place] = error
        return started

    async def _send_error(self, stream: EventStream, error: TgiError) -> None:
        is_openai = self._replica.wire.stream_errors is StreamErrors.OPENAI
        await stream.event(openai_event(error) if is_openai else error.envelope)

    def _chunk(self, place: int, run: Run, token: OutputToken) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": place, "text": token.piece.text, "logprobs": None, "finish_reason": ""}
        envelope = self._envelope()
        if token.ended is None:
            return self._middle(envelope, choice)
        record_success(self._replica, timings(run, token.ended, self._replica.clock.now()), token.ended)
        if not self._replica.wire.completion_usage:
            return self._middle(envelope, choice)
        choice["finish_reason"] = token.ended.reason.value
        return envelope | {"choices": [choice], "usage": usage_json(run.input_tokens, token.index)}

    def _middle(self, envelope: dict[str, Any], choice: dict[str, Any]) -> dict[str, Any]:
        """Return a chunk without usage, whose fields stand in another order."""
        names = ("object", "id", "created")
        return {
            **{name: envelope[name] for name in names},
            "choices": [choice],
            "model": envelope["model"],
            "system_fingerprint": envelope["system_fingerprint"],
        }

    def _envelope(self) -> dict[str, Any]:
        return {
            "object": "text_completion",
            "id": "",
            "created": self._replica.created,
            "model": self._replica.settings.model_id,
            "system_fingerprint": self._replica.fingerprint,
        }


def _summed_headers(wholes: list[Whole]) -> dict[str, str]:
    """Return the headers of all prompts added up; `x-compute-time` is not told here."""
    summed = {name: str(sum(int(whole.headers[name]) for whole in wholes)) for name in _SUMMED}
    return {"x-compute-type": COMPUTE_TYPE, **summed}
