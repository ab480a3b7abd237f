"""Real clients against a server that answers every request with one refusal, exactly as the contract writes it."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest
from aiohttp import web

from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane
from llmshed.admission.verdict import AcceptedMaximums
from llmshed.engines.base import Dialect
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.contract.refusals import ContractWriter

pytestmark = pytest.mark.usefixtures("foreign_sockets")

LIMITS = AcceptedMaximums(4096, 1024, 8192)
BUSY = Problem(Reason.TOKEN_BUDGET_EXHAUSTED, "no room", Lane.INTERACTIVE, LIMITS, 4000, retry_after_seconds=1.0)
TOO_LONG = Problem(Reason.CONTEXT_LIMIT, "too long", Lane.BULK, LIMITS, 19_000, retry_after_seconds=1.0)
BROKEN = Problem(Reason.UPSTREAM_ERROR, "the replica died", Lane.INTERACTIVE)
CHUNK = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hi","tool_calls":null},"finish_reason":null}]}\n\n'  # noqa: E501 - one event is one line
TOKEN = b'data: {"index":1,"token":{"id":1,"text":"hi","logprob":-0.5,"special":false},"generated_text":null,"details":null}\n\n'  # noqa: E501 - as above


@dataclass
class Refuser:
    """Answers with `problem`: at once, or as a late failure after one event when `late` is set."""

    problem: Problem = BUSY
    late: bool = False
    tries: int = 0
    url: str = ""
    writer: ContractWriter = field(default_factory=lambda: ContractWriter(lambda: 0.0, 1.0, 60.0))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        self.tries += 1
        dialect = Dialect.OPENAI if request.path.startswith("/v1/") else Dialect.NATIVE
        if self.late:
            response = web.StreamResponse(headers={"content-type": "text/event-stream", "x-request-id": "req_7"})
            await response.prepare(request)
            await response.write(CHUNK if dialect is Dialect.OPENAI else TOKEN)
            await response.write(self.writer.error_event(self.problem, dialect, "req_7"))
            return response
        answer = self.writer.refusal(self.problem, dialect, "req_7", request.headers.get("accept"))
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)


@pytest.fixture
def refuser() -> Iterator[Refuser]:
    """A server on a loop of its own, since the clients block."""
    state = Refuser()
    loop = asyncio.new_event_loop()
    started = threading.Event()

    async def start() -> web.AppRunner:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", state.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        state.url = f"http://{host}:{port}"
        started.set()
        return runner

    def run() -> None:
        runner = loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(10)
    yield state
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


@pytest.fixture
def openai() -> ModuleType:
    module: ModuleType = pytest.importorskip("openai", reason="extra `clients` is not installed")
    return module


def chat_with(openai: ModuleType, refuser: Refuser, tries: int, *, stream: bool = False) -> Any:
    with openai.OpenAI(base_url=f"{refuser.url}/v1", api_key="none", max_retries=tries - 1) as client:
        answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=stream)
        return [chunk.choices[0].delta.content for chunk in answer] if stream else answer


def assert_tells_all(text: str, *words: str) -> None:
    assert all(word in text for word in ("req_7", *words)), text


def test_openai_shows_reason_limit_and_id_of_a_busy_answer(openai: ModuleType, refuser: Refuser) -> None:
    with pytest.raises(openai.RateLimitError) as caught:
        chat_with(openai, refuser, tries=1)
    error = caught.value
    assert_tells_all(str(error), "token_budget_exhausted", "max_input_tokens=4096", "retry in 1 s")
    assert (error.code, error.type, error.request_id) == ("token_budget_exhausted", "rate_limit_error", "req_7")
    assert error.body["retry_after_ms"] == 1000


@pytest.mark.slow
def test_openai_comes_back_after_the_wait_it_was_told(openai: ModuleType, refuser: Refuser) -> None:
    with pytest.raises(openai.RateLimitError):
        chat_with(openai, refuser, tries=3)
    assert refuser.tries == 3


@pytest.mark.parametrize(
    "problem",
    [
        TOO_LONG,
        BROKEN,
        Problem(Reason.TOKEN_BUDGET_EXHAUSTED, "no room", retry_after_seconds=180.0),
        Problem(Reason.DEADLINE_INFEASIBLE, "too late", retry_after_seconds=2.0),
    ],
    ids=lambda problem: problem.reason.value,
)
def test_openai_does_not_resend_what_a_retry_cannot_help(
    openai: ModuleType, refuser: Refuser, problem: Problem
) -> None:
    refuser.problem = problem
    with pytest.raises(openai.APIStatusError) as caught:
        chat_with(openai, refuser, tries=3)
    assert refuser.tries == 1
    assert_tells_all(str(caught.value), problem.reason)


def test_openai_raises_on_a_stream_that_fails_late(openai: ModuleType, refuser: Refuser) -> None:
    refuser.problem, refuser.late = BROKEN, True
    with pytest.raises(openai.APIError) as caught:
        chat_with(openai, refuser, tries=3, stream=True)
    assert caught.value.code == "upstream_error"
    assert_tells_all(str(caught.value), "upstream_error")
    assert refuser.tries == 1


def test_huggingface_hub_raises_its_typed_errors_on_the_native_routes(refuser: Refuser) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="extra `clients` is not installed")
    errors = pytest.importorskip("huggingface_hub.errors")
    client = hub.InferenceClient(model=refuser.url)
    with pytest.raises(errors.OverloadedError) as busy:
        client.text_generation("hi")
    assert_tells_all(str(busy.value), "token_budget_exhausted", "max_input_tokens=4096")
    refuser.problem = TOO_LONG
    with pytest.raises(errors.ValidationError) as long:
        client.text_generation("hi")
    assert_tells_all(str(long.value), "context_limit", "max_input_tokens=4096")
    refuser.problem, refuser.late = BROKEN, True
    with pytest.raises(errors.GenerationError) as late:
        list(client.text_generation("hi", stream=True))
    assert_tells_all(str(late.value), "upstream_error")


def test_huggingface_hub_shows_the_message_on_the_chat_route(refuser: Refuser) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="extra `clients` is not installed")
    errors = pytest.importorskip("huggingface_hub.errors")
    client = hub.InferenceClient(base_url=f"{refuser.url}/v1", api_key="none")
    with pytest.raises(errors.HfHubHTTPError) as busy:
        client.chat_completion([{"role": "user", "content": "hi"}])
    assert_tells_all(str(busy.value), "token_budget_exhausted", "max_input_tokens=4096")


# The client still calls pydantic 1's names.
@pytest.mark.filterwarnings("ignore:The `dict` method is deprecated")
@pytest.mark.filterwarnings("ignore:The `parse_obj` method is deprecated")
def test_text_generation_raises_its_typed_errors(refuser: Refuser) -> None:
    text_generation = pytest.importorskip("text_generation", reason="extra `clients` is not installed")
    errors = pytest.importorskip("text_generation.errors")
    client = text_generation.Client(refuser.url)
    with pytest.raises(errors.OverloadedError) as busy:
        client.generate("hi")
    assert_tells_all(str(busy.value), "token_budget_exhausted", "max_input_tokens=4096")
    refuser.problem = TOO_LONG
    with pytest.raises(errors.ValidationError) as long:
        client.generate("hi")
    assert_tells_all(str(long.value), "context_limit")
    refuser.problem, refuser.late = BROKEN, True
    with pytest.raises(errors.GenerationError) as late:
        list(client.generate_stream("hi"))
    assert_tells_all(str(late.value), "upstream_error")


def test_urllib3_does_not_resend_a_413_however_it_is_told_to_retry(refuser: Refuser) -> None:
    urllib3 = pytest.importorskip("urllib3", reason="extra `clients` is not installed")
    refuser.problem = TOO_LONG
    with urllib3.PoolManager(retries=urllib3.Retry(total=2, allowed_methods=None)) as pool:
        answer = pool.request("POST", f"{refuser.url}/generate", json={"inputs": "hi"})
    assert (answer.status, refuser.tries) == (413, 1)


@pytest.mark.slow
def test_urllib3_obeys_the_retry_after_of_a_429(refuser: Refuser) -> None:
    urllib3 = pytest.importorskip("urllib3", reason="extra `clients` is not installed")
    retry = urllib3.Retry(total=1, allowed_methods=None, raise_on_status=False, status_forcelist=[429])
    with urllib3.PoolManager(retries=retry) as pool:
        answer = pool.request("POST", f"{refuser.url}/generate", json={"inputs": "hi"})
    assert (answer.status, refuser.tries) == (429, 2)
