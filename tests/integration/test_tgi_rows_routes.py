"""Every route of TGI's router: what it takes, who may ask, what is common to all answers.

Each row's id is a sentence of the router's source; `TGI 3.3.5` unless it says otherwise.
"""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from fakes.simulated import Answer, Site, simulated

HI = [{"role": "user", "content": "Hello"}]
NATIVE = {"inputs": "Hello", "parameters": {"max_new_tokens": 3}}
CHAT = {"messages": HI, "max_tokens": 3}
COMPLETION = {"prompt": "Hello", "max_tokens": 3}
VERTEX = {"instances": [NATIVE]}
SSE = "text/event-stream"
JSON = "application/json"
POSTS: dict[str, dict[str, Any]] = {
    "/": NATIVE,
    "/generate": NATIVE,
    "/generate_stream": NATIVE,
    "/v1/chat/completions": CHAT,
    "/v1/completions": COMPLETION,
    "/invocations": NATIVE,
    "/vertex": VERTEX,
    "/tokenize": NATIVE,
    "/chat_tokenize": CHAT,
}
GETS = ("/", "/health", "/ping", "/info", "/metrics", "/v1/models")
GUARDED = [path for path in POSTS if path != "/chat_tokenize"]


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with simulated() as running:
        yield running


@dataclass(frozen=True, slots=True)
class Row:
    """A body for a route, and the form of what comes back: names of an object, or of the object in an array of one."""

    path: str
    body: dict[str, Any]
    kind: str
    names: list[str]
    in_array: bool = False


CHAT_NAMES = ["object", "id", "created", "model", "system_fingerprint", "choices", "usage"]
TOKEN_NAMES = ["index", "token", "generated_text", "details"]
FORMS = {
    "POST / answers with an array of one": Row("/", NATIVE, JSON, ["generated_text"], in_array=True),
    "POST / streams if its body says so": Row("/", {**NATIVE, "stream": True}, SSE, TOKEN_NAMES),
    "POST /generate answers with one object": Row("/generate", NATIVE, JSON, ["generated_text"]),
    "POST /generate does not know `stream`": Row("/generate", {**NATIVE, "stream": True}, JSON, ["generated_text"]),
    "POST /generate_stream streams": Row("/generate_stream", NATIVE, SSE, TOKEN_NAMES),
    "POST /v1/chat/completions answers": Row("/v1/chat/completions", CHAT, JSON, CHAT_NAMES),
    "POST /v1/chat/completions streams": Row("/v1/chat/completions", {**CHAT, "stream": True}, SSE, CHAT_NAMES),
    "POST /v1/completions answers": Row("/v1/completions", COMPLETION, JSON, CHAT_NAMES),
    "POST /v1/completions streams": Row(
        "/v1/completions",
        {**COMPLETION, "stream": True},
        SSE,
        ["object", "id", "created", "choices", "model", "system_fingerprint"],
    ),
    "POST /invocations takes inputs": Row("/invocations", NATIVE, JSON, ["generated_text"], in_array=True),
    "POST /invocations streams inputs": Row("/invocations", {**NATIVE, "stream": True}, SSE, TOKEN_NAMES),
    "POST /invocations takes messages": Row("/invocations", CHAT, JSON, CHAT_NAMES),
    "POST /invocations streams messages": Row("/invocations", {**CHAT, "stream": True}, SSE, CHAT_NAMES),
    "POST /invocations takes a prompt": Row("/invocations", COMPLETION, JSON, CHAT_NAMES),
    "POST /invocations prefers inputs to messages": Row(
        "/invocations", {**CHAT, **NATIVE}, JSON, ["generated_text"], in_array=True
    ),
    "POST /invocations prefers messages to a prompt": Row("/invocations", {**COMPLETION, **CHAT}, JSON, CHAT_NAMES),
    "POST /vertex answers with predictions": Row("/vertex", VERTEX, JSON, ["predictions"]),
    "POST /tokenize lists tokens": Row(
        "/tokenize", {"inputs": "x"}, JSON, ["id", "text", "start", "stop"], in_array=True
    ),
    "POST /chat_tokenize tells the text too": Row(
        "/chat_tokenize", CHAT, JSON, ["tokenize_response", "templated_text"]
    ),
}


@pytest.mark.parametrize("row", FORMS.values(), ids=FORMS)
async def test_a_route_answers_in_its_form(site: Site, row: Row) -> None:
    answer = await site.post(row.path, row.body)
    assert (answer.status, answer.headers["content-type"]) == (200, row.kind)
    told = answer.events[0] if row.kind == SSE else answer.json
    if row.in_array:
        (told,) = told
    assert list(told) == row.names


async def test_the_compatible_routes_repeat_the_prompt_unless_told_not_to(site: Site) -> None:
    text = (await site.post("/generate", NATIVE)).json["generated_text"]
    bare = {**NATIVE, "parameters": {"max_new_tokens": 3, "return_full_text": False}}
    for path in ("/", "/invocations"):
        assert (await site.post(path, NATIVE)).json == [{"generated_text": "Hello" + text}]
        assert (await site.post(path, bare)).json == [{"generated_text": text}]


async def test_an_invocation_of_no_known_form_is_a_422_in_plain_text(site: Site) -> None:
    bodies: list[Any] = [{}, {"inputs": 3}, {"messages": "x"}, {"prompt": []}, [], {"messages": HI, "tool_choice": 3}]
    text = "data did not match any variant of untagged enum SagemakerRequest"
    for body in bodies:
        answer = await site.post("/invocations", body)
        assert answer.status == 422
        assert answer.body.decode() == f"Failed to deserialize the JSON body into the target type: {text}"
    assert (await site.post("/invocations", b"{")).status == 400


async def test_vertex_uses_of_an_instance_s_parameters_only_ceiling_and_seed(site: Site) -> None:
    alone = {"inputs": "Hello", "parameters": {"max_new_tokens": 5, "seed": 7, "do_sample": True}}
    (text,) = [(await site.post("/generate", alone)).json["generated_text"]]
    noisy = {**alone["parameters"], "stop": [text[:1]], "truncate": 1, "best_of": 9, "temperature": -1}  # type: ignore[dict-item] # a dict of mixed values
    answer = await site.post("/vertex", {"instances": [{"inputs": "Hello", "parameters": noisy}]})
    assert answer.json == {"predictions": [text]}
    assert [name for name in answer.headers if name.lower().startswith("x-")] == []


async def test_vertex_answers_instances_of_both_kinds_in_their_order(site: Site) -> None:
    short, long = {**CHAT, "max_tokens": 1}, {"inputs": "Hello", "parameters": {"max_new_tokens": 9}}
    both = (await site.post("/vertex", {"instances": [long, short]})).json["predictions"]
    chat = (await site.post("/v1/chat/completions", short)).json["choices"][0]["message"]["content"]
    alone = (await site.post("/generate", long)).json["generated_text"]
    assert both == [alone, chat]


VERTEX_FAILURES = {
    "no instance": ({"instances": []}, 422, "Input validation error", "Input validation error"),
    "an instance that fails its validation is a 500": (
        {"instances": [NATIVE, {"inputs": ""}]},
        500,
        "Incomplete generation",
        "Incomplete generation",
    ),
    "a chat that cannot be prepared keeps its own status": (
        {"instances": [{**CHAT, "tools": [], "response_format": {"type": "regex", "value": "a"}}]},
        422,
        "Tool error: Grammar and tools are mutually exclusive",
        "tool_error",
    ),
}


@pytest.mark.parametrize(("body", "status", "error", "kind"), VERTEX_FAILURES.values(), ids=VERTEX_FAILURES)
async def test_vertex_has_its_own_errors(site: Site, body: Any, status: int, error: str, kind: str) -> None:
    answer = await site.post("/vertex", body)
    assert (answer.status, answer.json) == (status, {"error": error, "error_type": kind})


async def test_vertex_turns_an_overload_into_a_500(site: Site) -> None:
    await site.post("/_simulate/faults", {"overloaded": True})
    answer = await site.post("/vertex", VERTEX)
    expected = {"error": "Incomplete generation", "error_type": "Incomplete generation"}
    assert (answer.status, answer.json) == (500, expected)


async def test_an_instance_of_no_known_form_is_named(site: Site) -> None:
    answer = await site.post("/vertex", {"instances": [NATIVE, {"prompt": "x"}]})
    assert (answer.status, answer.headers["content-type"]) == (422, "text/plain; charset=utf-8")
    assert answer.body.decode() == (
        "Failed to deserialize the JSON body into the target type: "
        "instances[1]: data did not match any variant of untagged enum VertexInstance"
    )


@pytest.mark.parametrize("path", GUARDED)
async def test_a_key_is_asked_for_and_compared_without_regard_to_case(path: str) -> None:
    async with simulated(api_key="Secret") as site:
        for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Secret"}, {"authorization": "Bearer"}):
            answer = await site.post(path, POSTS[path], **given)
            assert (answer.status, answer.body) == (401, b"")
            # The key comes before the body is looked at.
            assert (await site.post(path, b"{", **given)).status == 401
        for right in ("Bearer Secret", "bearer sECRET", "BEARER SECRET"):
            assert (await site.post(path, POSTS[path], authorization=right)).status == 200


async def test_what_only_informs_needs_no_key() -> None:
    async with simulated(api_key="Secret") as site:
        for path in GETS:
            assert (await site.get(path)).status == 200
        assert (await site.post("/chat_tokenize", CHAT)).status == 200
        assert (await site.get("/nope")).status == 404
        # A guarded path asks for the key before it looks at the method.
        assert (await site.get("/generate")).status == 401


async def answers_of_all_kinds(site: Site) -> list[Answer]:
    return [
        await site.get("/health"),
        await site.get("/nope"),
        await site.get("/generate"),
        await site.post("/generate", NATIVE),
        await site.post("/generate", b"{"),
        await site.post("/generate", {"inputs": ""}),
        await site.post("/generate_stream", NATIVE),
        await site.post("/v1/chat/completions", CHAT),
    ]


async def test_every_answer_allows_any_origin_and_names_no_server_and_no_request(site: Site) -> None:
    for answer in await answers_of_all_kinds(site):
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.headers["vary"] == "origin, access-control-request-method, access-control-request-headers"
        assert not {"server", "x-request-id", "request-id", "retry-after"} & {name.lower() for name in answer.headers}


@pytest.mark.parametrize("path", ["/generate", "/v1/chat/completions", "/info", "/nope"])
async def test_a_preflight_is_allowed_everywhere_and_before_the_key(path: str) -> None:
    async with simulated(api_key="Secret") as site:
        asked = {"origin": "https://example.org", "access-control-request-method": "POST"}
        async with site.session.options(site.url + path, headers=asked) as response:
            told = {name.lower(): value for name, value in response.headers.items()}
            assert (response.status, await response.read()) == (200, b"")
    assert told["access-control-allow-origin"] == "*"
    assert told["access-control-allow-methods"] == "GET,POST"
    assert told["access-control-allow-headers"] == "content-type"


@pytest.mark.parametrize(
    ("version", "most_bytes"), [("3.3.5", 2_000_000), ("2.4.1", 2_000_000), ("2.4.0", 2_097_152), ("1.4.5", 2_097_152)]
)
async def test_a_body_over_the_payload_limit_is_a_413_in_plain_text(version: str, most_bytes: int) -> None:
    async with simulated({"version": version, "max_batch_prefill_tokens": 8192}) as site:
        for path in (path for path in POSTS if version > "2.3" or path != "/chat_tokenize"):
            within = await site.post(path, b"{".ljust(most_bytes))
            beyond = await site.post(path, b"{".ljust(most_bytes + 1))
            assert within.status == 400
            assert (beyond.status, beyond.headers["content-type"]) == (413, "text/plain; charset=utf-8")
            assert beyond.body == b"Failed to buffer the request body: length limit exceeded"


@pytest.mark.parametrize("path", POSTS)
async def test_unknown_fields_are_ignored(site: Site, path: str) -> None:
    unknown = {"priority": 1, "chat_template_kwargs": {"a": 1}, "user": "u", "nothing": None}
    if path == "/vertex":
        plain, more = POSTS[path], {"instances": [{**NATIVE, **unknown}], **unknown}
    else:
        plain, more = POSTS[path], {**POSTS[path], **unknown}
    first, second = await site.post(path, plain), await site.post(path, more)
    assert second.status == 200
    assert without_times(second.body) == without_times(first.body)


def without_times(body: bytes) -> bytes:
    """Mask what tells the second in which an answer was made."""
    return re.sub(rb'"created":\d+', b'"created":0', body)


async def test_paths_that_are_none_and_methods_that_do_not_fit_have_empty_answers(site: Site) -> None:
    for path in ("/nope", "/v1", "/v1/embeddings", "/generate/"):
        answer = await site.get(path)
        assert (answer.status, answer.body) == (404, b"")
    for path in ("/generate", "/v1/completions", "/vertex", "/chat_tokenize"):
        answer = await site.get(path)
        assert (answer.status, answer.body, answer.headers["allow"]) == (405, b"", "POST")
    answer = await site.post("/info", {})
    assert (answer.status, answer.body) == (405, b"")


OLDER = {
    "1.4.5 has no /v1/models": ("1.4.5", "GET", "/v1/models", None, 404),
    "1.4.5 has no /chat_tokenize": ("1.4.5", "POST", "/chat_tokenize", CHAT, 404),
    "2.3.0 has /v1/models": ("2.3.0", "GET", "/v1/models", None, 200),
    "2.3.0 has /chat_tokenize": ("2.3.0", "POST", "/chat_tokenize", CHAT, 200),
    "1.4.5 has /ping": ("1.4.5", "GET", "/ping", None, 200),
    "before 2.4.0 /invocations takes no chats": ("2.3.1", "POST", "/invocations", CHAT, 422),
    "before 2.4.0 /invocations takes inputs": ("1.4.5", "POST", "/invocations", NATIVE, 200),
    "from 2.4.0 on /invocations takes chats": ("2.4.0", "POST", "/invocations", CHAT, 200),
    "before 2.3.0 /vertex takes no chats": ("2.2.0", "POST", "/vertex", {"instances": [CHAT]}, 422),
    "before 2.3.0 /vertex takes inputs": ("1.4.5", "POST", "/vertex", VERTEX, 200),
    "from 2.3.0 on /vertex takes chats": ("2.3.0", "POST", "/vertex", {"instances": [CHAT]}, 200),
    "1.4.5 takes no list of prompts": ("1.4.5", "POST", "/v1/completions", {**COMPLETION, "prompt": ["a", "b"]}, 422),
    "1.4.5 takes no list even of one": ("1.4.5", "POST", "/v1/completions", {**COMPLETION, "prompt": ["a"]}, 422),
    "2.0.1 takes a list of prompts": ("2.0.1", "POST", "/v1/completions", {**COMPLETION, "prompt": ["a", "b"]}, 200),
}


@pytest.mark.parametrize(("version", "method", "path", "body", "status"), OLDER.values(), ids=OLDER)
async def test_older_versions_have_fewer_routes(
    version: str, method: str, path: str, body: dict[str, Any] | None, status: int
) -> None:
    async with simulated({"version": version, "max_batch_prefill_tokens": 8192}) as site:
        answer = await site.get(path) if method == "GET" else await site.post(path, body)
    assert answer.status == status
