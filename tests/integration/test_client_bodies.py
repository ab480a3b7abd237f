"""Bodies as the clients themselves write them, recorded from the wire, read and written again."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from llmshed.engines.base import Call, Route
from llmshed.engines.tgi.engine import TgiEngine
from llmshed.gateway.door.body import parse_body
from llmshed.tokenizing.prompts import ChatPrompt, TextPrompt

MESSAGES = [{"role": "user", "content": "Hello"}]
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
CEILING = 77
# What text-generation 0.7 itself calls on pydantic 2.
client_is_deprecated = pytest.mark.filterwarnings("ignore:The `dict` method is deprecated")


@dataclass
class Recorder:
    """Takes down what was posted and answers with an error that no client retries."""

    url: str
    posted: list[tuple[str, bytes]] = field(default_factory=list)

    def call(self) -> tuple[Call, dict[str, Any]]:
        """The one request as the gateway reads it, and as it goes on."""
        (path, raw) = self.posted.pop()
        assert not self.posted
        engine = TgiEngine("3.3.5", allow_truncate=True)
        call = engine.read_call(Route(path), parse_body(raw))
        return call, json.loads(engine.write_body(call, CEILING))


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    class Handler(BaseHTTPRequestHandler):
        owner: ClassVar[Recorder]

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            self.owner.posted.append((self.path, raw))
            body = b'{"error":"recorded","error_type":"validation"}'
            self.send_response(422)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep the tests' output to themselves."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Handler.owner = Recorder(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Handler.owner
        server.shutdown()
        thread.join()


def refused(send: Callable[[], Any]) -> None:
    """Let a client send; the recorder's answer is an error to every one of them."""
    with pytest.raises(Exception, match=r"422|recorded|validation"):
        send()


@pytest.fixture
def openai(recorder: Recorder) -> Iterator[Any]:
    module = pytest.importorskip("openai")
    with module.OpenAI(base_url=f"{recorder.url}/v1", api_key="k") as client:
        yield client


def test_openai_chat(recorder: Recorder, openai: Any) -> None:
    refused(
        lambda: openai.chat.completions.create(
            model="m",
            messages=MESSAGES,
            max_completion_tokens=50,
            temperature=0.5,
            stop="END",
            n=2,
            stream=True,
            stream_options={"include_usage": True},
            tools=[TOOL],
            tool_choice="auto",
            parallel_tool_calls=False,
            user="u",
            store=False,
            seed=7,
            service_tier="flex",
            metadata={"team": "a"},
            prompt_cache_key="s",
            logit_bias={"50256": -100},
        )
    )
    call, wire = recorder.call()
    assert call.prompts == (ChatPrompt(MESSAGES, [TOOL], "auto"),)
    assert (call.model, call.copies, call.asked_output_tokens, call.streamed) == ("m", 2, 50, True)
    assert (call.declared_intent, call.session_hint) == ("bulk", "s")
    assert wire == {
        "messages": MESSAGES,
        "model": "m",
        "max_tokens": CEILING,
        "n": 2,
        "seed": 7,
        "stop": ["END"],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "tool_choice": "auto",
        "tools": [TOOL],
    }


def test_openai_chat_that_sends_an_answer_back_with_its_tool_calls(recorder: Recorder, openai: Any) -> None:
    types = pytest.importorskip("openai.types.chat")
    tool_call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answer = types.ChatCompletionMessage(role="assistant", content=None, tool_calls=[tool_call])
    messages = [*MESSAGES, answer, {"role": "tool", "content": "7", "tool_call_id": "c"}]
    refused(lambda: openai.chat.completions.create(model="m", messages=messages))
    call, wire = recorder.call()
    kept: list[dict[str, Any]] = [
        *MESSAGES,
        {"role": "assistant", "tool_calls": [tool_call]},
        {"role": "tool", "content": "7"},
    ]
    assert call.prompts == (ChatPrompt(kept),)
    assert wire == {"messages": kept, "model": "m", "max_tokens": CEILING}


def test_openai_chat_with_an_image(recorder: Recorder, openai: Any) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}
    content = [{"type": "text", "text": "see"}, image]
    refused(lambda: openai.chat.completions.create(model="m", messages=[{"role": "user", "content": content}]))
    call, _ = recorder.call()
    assert call.images == 1


def test_openai_completions(recorder: Recorder, openai: Any) -> None:
    refused(
        lambda: openai.completions.create(
            model="m", prompt=["a", "b"], max_tokens=16, best_of=2, n=1, presence_penalty=0, logprobs=1, user="u"
        )
    )
    call, wire = recorder.call()
    assert call.prompts == (TextPrompt("a"), TextPrompt("b"))
    assert (call.copies, call.asked_output_tokens) == (2, 16)
    assert wire == {"model": "m", "prompt": ["a", "b"], "best_of": 2, "max_tokens": CEILING, "n": 1}


@pytest.fixture
def hub(recorder: Recorder) -> Any:
    return pytest.importorskip("huggingface_hub").InferenceClient(recorder.url)


def test_huggingface_hub_text_generation(recorder: Recorder, hub: Any) -> None:
    refused(lambda: hub.text_generation("Hello", max_new_tokens=20, details=True, stop=["END"], temperature=0.5))
    call, wire = recorder.call()
    assert (call.route, call.streamed, call.asked_output_tokens) == (Route.ROOT, False, 20)
    assert call.prompts == (TextPrompt("Hello"),)
    assert wire["inputs"] == "Hello"
    assert wire["parameters"] == {"details": True, "max_new_tokens": CEILING, "stop": ["END"], "temperature": 0.5}


def test_huggingface_hub_text_generation_that_names_nothing(recorder: Recorder, hub: Any) -> None:
    refused(lambda: list(hub.text_generation("Hello", stream=True)))
    call, wire = recorder.call()
    assert (call.route, call.streamed, call.asked_output_tokens) == (Route.ROOT, True, None)
    assert wire["parameters"]["max_new_tokens"] == CEILING


def test_huggingface_hub_chat(recorder: Recorder, hub: Any) -> None:
    refused(lambda: hub.chat_completion(MESSAGES, max_tokens=20, stop=["END"], seed=7, tools=[TOOL], logprobs=True))
    call, wire = recorder.call()
    assert call.route is Route.CHAT
    assert call.prompts == (ChatPrompt(MESSAGES, [TOOL]),)
    assert call.asked_output_tokens == 20
    assert wire["max_tokens"] == CEILING
    assert wire["stop"] == ["END"]
    assert wire["stream"] is False


@pytest.fixture
def text_generation(recorder: Recorder) -> Any:
    return pytest.importorskip("text_generation").Client(recorder.url)


@client_is_deprecated
def test_text_generation_generate(recorder: Recorder, text_generation: Any) -> None:
    refused(lambda: text_generation.generate("Hello", max_new_tokens=20, best_of=2, do_sample=True, truncate=100))
    call, wire = recorder.call()
    assert (call.route, call.streamed, call.copies) == (Route.ROOT, False, 2)
    assert (call.asked_output_tokens, call.truncate_tokens) == (20, 100)
    assert wire["parameters"] == {
        "do_sample": True,
        "max_new_tokens": CEILING,
        "return_full_text": False,
        "stop": [],
        "truncate": 100,
        "best_of": 2,
        "watermark": False,
        "details": True,
        "decoder_input_details": False,
    }


@client_is_deprecated
def test_text_generation_generate_stream(recorder: Recorder, text_generation: Any) -> None:
    refused(lambda: list(text_generation.generate_stream("Hello", stop_sequences=["END"])))
    call, wire = recorder.call()
    assert (call.route, call.streamed, call.asked_output_tokens) == (Route.ROOT, True, 20)
    assert wire["stream"] is True
    assert wire["parameters"]["stop"] == ["END"]


@client_is_deprecated
def test_text_generation_chat(recorder: Recorder, text_generation: Any) -> None:
    refused(lambda: text_generation.chat(MESSAGES, max_tokens=20, seed=7))
    call, wire = recorder.call()
    assert (call.route, call.model, call.asked_output_tokens) == (Route.CHAT, "tgi", 20)
    assert call.prompts == (ChatPrompt(MESSAGES),)
    assert wire == {"model": "tgi", "messages": MESSAGES, "max_tokens": CEILING, "stream": False, "seed": 7}
