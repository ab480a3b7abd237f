"""TGI's errors on every route: status and envelope before an answer, bytes inside a stream.

Each row's id is the case; the texts are those of router/src/infer/mod.rs and router/src/validation.rs.
"""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import pytest_asyncio

from fakes.simulated import Answer, Site, simulated
from llmshed.emulator.faults import FaultPlan

HI = [{"role": "user", "content": "Hello"}]
LIMITS = {"max_input_tokens": 100, "max_total_tokens": 120}
LONG = "word " * 150
PLAIN = "text/plain; charset=utf-8"
VALIDATION = "Input validation error: "
WORDS = 151
"""Tokens of `LONG`: its words, and the space behind the last."""
TOO_MUCH = (
    f"{VALIDATION}`inputs` tokens + `max_new_tokens` must be <= 120. "
    f"Given: {WORDS} `inputs` tokens and 4 `max_new_tokens`"
)


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with simulated(LIMITS) as running:
        yield running


def native(*, stream: bool, inputs: str = "Hello", **parameters: Any) -> tuple[str, dict[str, Any]]:
    body = {"inputs": inputs, "parameters": {"max_new_tokens": 4, **parameters}}
    return ("/generate_stream" if stream else "/generate"), body


def chat(*, stream: bool, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "/v1/chat/completions", {"messages": HI, "max_tokens": 4, "stream": stream, **fields}


def completion(*, stream: bool, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "/v1/completions", {"prompt": "Hello", "max_tokens": 4, "stream": stream, **fields}


# --- cases that a permit, a rule or a limit decides: a status before an answer, an event inside a stream

Asked = tuple[Any, dict[str, Any]]
CASES: dict[str, tuple[Asked, int, str, str]] = {
    "native: no new tokens": (
        (native, {"max_new_tokens": 0}),
        422,
        "validation",
        VALIDATION + "`max_new_tokens` must be strictly positive",
    ),
    "native: empty inputs": (
        (native, {"inputs": ""}),
        422,
        "validation",
        VALIDATION + "`inputs` cannot be empty",
    ),
    "native: input and ceiling over the total": (
        (native, {"inputs": LONG}),
        422,
        "validation",
        TOO_MUCH,
    ),
    "native: input over its limit": (
        (native, {"inputs": "word " * 104, "max_new_tokens": 4}),
        422,
        "validation",
        VALIDATION + "`inputs` must have less than 100 tokens. Given: 105",
    ),
    "native: truncate over the limit": (
        (native, {"truncate": 101}),
        422,
        "validation",
        VALIDATION + "`truncate` must be strictly positive and less than 100. Given: 101",
    ),
    "native: a grammar that is not valid": (
        (native, {"grammar": {"type": "json", "value": {}}}),
        422,
        "validation",
        VALIDATION + "grammar is not valid: Grammar must have a 'properties' field",
    ),
    "chat: no new tokens": (
        (chat, {"max_tokens": 0}),
        422,
        "validation",
        VALIDATION + "`max_new_tokens` must be strictly positive",
    ),
    "chat: top_p": (
        (chat, {"top_p": 1}),
        422,
        "validation",
        VALIDATION + "`top_p` must be > 0.0 and < 1.0",
    ),
    "completion: an empty prompt": (
        (completion, {"prompt": ""}),
        422,
        "validation",
        VALIDATION + "`inputs` cannot be empty",
    ),
    "completion: input and ceiling over the total": (
        (completion, {"prompt": LONG}),
        422,
        "validation",
        TOO_MUCH,
    ),
}
FAULTS: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "no permit": ({"overloaded": True}, 429, "overloaded", "Model is overloaded"),
    "a failed step": (
        {"fail_after_events": 2},
        424,
        "generation",
        "Request failed during generation: Server error: CUDA out of memory",
    ),
}


def envelope(error: str, error_type: str) -> bytes:
    return b'{"error":' + orjson.dumps(error) + b',"error_type":' + orjson.dumps(error_type) + b"}"


def openai_event(error: str) -> bytes:
    """Return the bytes of an error inside an OpenAI stream: 422 whatever it is."""
    return b'data: {"error":{"message":' + orjson.dumps(error) + b',"http_status_code":422}}\n\n'


def expected_end(path: str, error: str, error_type: str) -> bytes:
    """Return the bytes with which a stream that fails ends."""
    if path == "/generate_stream":
        return b"data: " + envelope(error, error_type) + b"\n\n"
    return openai_event(error) + b"data: [DONE]\n\n"


@pytest.mark.parametrize(("asked", "status", "error_type", "error"), CASES.values(), ids=CASES)
async def test_a_refusal_has_a_status_before_an_answer(
    site: Site, asked: Asked, status: int, error_type: str, error: str
) -> None:
    build, fields = asked
    answer = await site.post(*build(stream=False, **fields))
    assert (answer.status, answer.body) == (status, envelope(error, error_type))
    assert answer.headers["content-type"] == "application/json"
    assert_no_work_is_told(answer)


@pytest.mark.parametrize(("asked", "status", "error_type", "error"), CASES.values(), ids=CASES)
async def test_a_refusal_is_an_event_inside_a_stream_of_status_200(
    site: Site, asked: Asked, status: int, error_type: str, error: str
) -> None:
    del status
    build, fields = asked
    path, body = build(stream=True, **fields)
    answer = await site.post(path, body)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
    assert answer.body == expected_end(path, error, error_type)


@pytest.mark.parametrize("build", [native, chat, completion], ids=["native", "chat", "completion"])
@pytest.mark.parametrize(("fault", "status", "error_type", "error"), FAULTS.values(), ids=FAULTS)
async def test_a_failing_replica_is_told_on_every_route(
    build: Any, fault: dict[str, Any], status: int, error_type: str, error: str
) -> None:
    # Long enough not to be done before the failure on any machine.
    asked = {"max_new_tokens": 6000} if build is native else {"max_tokens": 6000}
    path, body = build(stream=True, **asked)
    async with simulated(faults=FaultPlan(**fault)) as site:
        unary = await site.post(*build(stream=False, **asked))
        stream = await site.post(path, body)
    assert (unary.status, unary.body) == (status, envelope(error, error_type))
    assert_no_work_is_told(unary)
    assert stream.status == 200
    assert stream.body.endswith(expected_end(path, error, error_type))
    assert stream.body.count(b'"error"') == 1


def assert_no_work_is_told(answer: Answer) -> None:
    told = {name.lower() for name in answer.headers}
    assert not {name for name in told if name.startswith("x-")} | ({"retry-after"} & told)


# --- parameters that have no stream: two events, since the router then finds that the stream had no end


UNSTREAMED = {
    "best_of": ({"best_of": 2}, "`best_of` != 1 is not supported when streaming tokens"),
    "best_of of 0": ({"best_of": 0}, "`best_of` != 1 is not supported when streaming tokens"),
    "decoder_input_details": (
        {"decoder_input_details": True},
        "`decoder_input_details` == true is not supported when streaming tokens",
    ),
}


@pytest.mark.parametrize(
    ("version", "incomplete"),
    [
        ("3.3.5", ("Incomplete generation stream", "incomplete_generation_stream")),
        ("2.4.0", ("Incomplete generation stream", "incomplete_generation_stream")),
        ("2.2.0", ("Incomplete generation", "incomplete_generation")),
    ],
)
@pytest.mark.parametrize(("parameters", "text"), UNSTREAMED.values(), ids=UNSTREAMED)
async def test_what_cannot_be_streamed_is_told_with_two_errors(
    parameters: dict[str, Any], text: str, version: str, incomplete: tuple[str, str]
) -> None:
    async with simulated({"version": version, "max_batch_prefill_tokens": 8192}) as site:
        answer = await site.post(*native(stream=True, **parameters))
        metrics = (await site.get("/metrics")).body.decode()
    first = b"data: " + envelope(VALIDATION + text, "validation") + b"\n\n"
    second = b"data: " + envelope(*incomplete) + b"\n\n"
    assert (answer.status, answer.body) == (200, first + second)
    assert 'tgi_request_failure{err="validation"} 1\n' in metrics
    assert 'tgi_request_failure{err="incomplete"} 1\n' in metrics


# --- what is settled before a stream begins has a status there too


EARLY: dict[str, tuple[Asked, str, str]] = {
    "tools beside a grammar": (
        (chat, {"tools": [], "response_format": {"type": "regex", "value": "a"}}),
        "tool_error",
        "Tool error: Grammar and tools are mutually exclusive",
    ),
    "a suffix": (
        (completion, {"suffix": "x"}),
        "suffix not supported",
        "Suffix is not supported and can be achieved by preprocessing the prompt.",
    ),
    "too many prompts": (
        (completion, {"prompt": ["a"] * 5}),
        "batch size exceeded",
        "Number of prompts exceeds the maximum allowed batch size of 4",
    ),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("asked", "error_type", "error"), EARLY.values(), ids=EARLY)
async def test_what_is_known_before_the_stream_has_its_own_status(
    site: Site, asked: Asked, error_type: str, error: str, *, stream: bool
) -> None:
    build, fields = asked
    answer = await site.post(*build(stream=stream, **fields))
    assert (answer.status, answer.body) == (422, envelope(error, error_type))


async def test_a_template_that_is_missing_or_fails_is_a_422(tmp_path: Any) -> None:
    """One that fails is counted, one that is missing is not."""
    for name, template, text, counts in (
        ("missing", None, "template not found", False),
        ("raising", "{{ raise_exception('no') }}", "no", True),
    ):
        place = tmp_path / name
        place.mkdir()
        write_tokenizer(place, template)
        async with simulated(tokenizer=str(place)) as site:
            answers = [await site.post(*chat(stream=stream)) for stream in (False, True)]
            answers.append(await site.post("/chat_tokenize", {"messages": HI}))
            metrics = (await site.get("/metrics")).body.decode()
        for answer in answers:
            assert (answer.status, answer.json["error_type"]) == (422, "template_error")
            assert answer.json["error"].startswith("Template error: ")
            assert text in answer.json["error"]
        # Twice for the chats, once for counting.
        assert ('tgi_request_failure{err="template"} 3\n' in metrics) == counts
        assert ("tgi_request_failure" in metrics) == counts


def write_tokenizer(place: Any, template: str | None) -> None:
    """Write a tokenizer of words, with this chat template or none."""
    words = {word: number for number, word in enumerate(["<unk>", "</s>", "Hello", "a", "b", "c", ".", ","])}
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"},
    }
    (place / "tokenizer.json").write_bytes(orjson.dumps(tokenizer))
    config = {"eos_token": "</s>", **({} if template is None else {"chat_template": template})}
    (place / "tokenizer_config.json").write_bytes(orjson.dumps(config))


# --- bodies that axum itself refuses, in plain text, on every route that reads one


ROUTES = ("/", "/generate", "/generate_stream", "/v1/chat/completions", "/v1/completions", "/vertex", "/tokenize")
UNREADABLE: dict[str, tuple[bytes, str, int, str]] = {
    "no JSON": (b"{", "application/json", 400, "Failed to parse the request body as JSON: "),
    "nothing": (b"", "application/json", 400, "Failed to parse the request body as JSON: "),
    "half a surrogate pair": (b'{"a":"\\ud800"}', "application/json", 400, "Failed to parse the request body as JSON"),
    "no UTF-8": (b'{"a":"\xff"}', "application/json", 400, "Failed to parse the request body as JSON: "),
    "no field that is needed": (b"{}", "application/json", 422, "Failed to deserialize the JSON body into the target"),
    "no object": (b"[]", "application/json", 422, "Failed to deserialize the JSON body into the target type: "),
    "no content type of JSON": (b"{}", "text/plain", 415, "Expected request with `Content-Type: application/json`"),
    "a form": (b"{}", "multipart/form-data", 415, "Expected request with `Content-Type: application/json`"),
    "too long": (b" " * 2_000_001, "application/json", 413, "Failed to buffer the request body: length limit exceeded"),
}


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(("data", "kind", "status", "text"), UNREADABLE.values(), ids=UNREADABLE)
async def test_a_body_that_is_none_is_told_in_plain_text(
    site: Site, path: str, data: bytes, kind: str, status: int, text: str
) -> None:
    answer = await site.post(path, data, content_type=kind)
    assert (answer.status, answer.headers["content-type"]) == (status, PLAIN)
    assert answer.body.decode().startswith(text)


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "application/vnd.api+json", "APPLICATION/JSON"])
async def test_kindred_content_types_are_json_too(site: Site, kind: str) -> None:
    path, body = native(stream=False)
    assert (await site.post(path, orjson.dumps(body), content_type=kind)).status == 200


# --- older versions


OLD_STREAMS: dict[str, tuple[str, Any, bytes]] = {
    "3.0.1: chat errors in OpenAI's form": (
        "3.0.1",
        chat,
        b'data: {"error":{"message":%s,"http_status_code":422}}\n\n',
    ),
    "2.4.1: chat errors in OpenAI's form": (
        "2.4.1",
        chat,
        b'data: {"error":{"message":%s,"http_status_code":422}}\n\n',
    ),
    "2.4.0: chat errors are swallowed": ("2.4.0", chat, b""),
    "2.4.0: completions' errors are native": ("2.4.0", completion, b'data: {"error":%s,"error_type":"overloaded"}\n\n'),
    "1.4.5: chat errors are native": ("1.4.5", chat, b'data:{"error":%s,"error_type":"overloaded"}\n\n'),
    "1.4.5: completions' errors are native": ("1.4.5", completion, b'data:{"error":%s,"error_type":"overloaded"}\n\n'),
    "1.4.5: native errors have no space": ("1.4.5", native, b'data:{"error":%s,"error_type":"overloaded"}\n\n'),
}


@pytest.mark.parametrize(("version", "build", "event"), OLD_STREAMS.values(), ids=OLD_STREAMS)
async def test_older_streams_tell_errors_otherwise(version: str, build: Any, event: bytes) -> None:
    async with simulated({"version": version, "max_batch_prefill_tokens": 8192}) as site:
        await site.post("/_simulate/faults", {"overloaded": True})
        answer = await site.post(*build(stream=True))
    told = event % b'"Model is overloaded"' if event else b""
    done = b"" if version == "1.4.5" or build is native else b"data: [DONE]\n\n"
    assert (answer.status, answer.body) == (200, told + done)
