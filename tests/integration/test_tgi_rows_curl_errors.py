"""What the real curl sees of refusals and failures: whole heads and every byte, whole and streamed."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from fakes.curl import CORS, CURL, JSON, PLAIN, curl, streamed
from fakes.simulated_process import QUICK, framed, simulated_process

pytestmark = pytest.mark.skipif(CURL is None, reason="curl is not installed")

HI = [{"role": "user", "content": "Why was this refused?"}]
PROMPT = "Why?"
NATIVE = {"inputs": PROMPT, "parameters": {"max_new_tokens": 5}}
CHAT = {"messages": HI, "max_tokens": 5}
COMPLETION = {"prompt": PROMPT, "max_tokens": 5}


@pytest.fixture(scope="module")
def replica() -> Iterator[str]:
    with simulated_process(*QUICK) as url:
        yield url


@pytest.fixture
def url(replica: str) -> Iterator[str]:
    yield replica
    curl(f"{replica}/_simulate/faults", data={})


def rendered(url: str, **fields: Any) -> tuple[str, int]:
    value = orjson.loads(curl(f"{url}/chat_tokenize", data={"messages": HI, **fields}).body)
    return value["templated_text"], len(value["tokenize_response"])


INVALID = "Input validation error: `max_new_tokens` must be strictly positive"
BROKEN = "Request failed during generation: Server error: CUDA out of memory"
PATHS = ("/generate", "/v1/chat/completions", "/v1/completions")
BODIES: dict[str, dict[str, Any]] = {"/generate": NATIVE, "/v1/chat/completions": CHAT, "/v1/completions": COMPLETION}
CAUSES: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "429": ({"overloaded": True}, "429 Too Many Requests", "Model is overloaded", "overloaded"),
    "422": ({}, "422 Unprocessable Entity", INVALID, "validation"),
    "424": ({"fail_after_events": 1}, "424 Failed Dependency", BROKEN, "generation"),
}


def asked(path: str, cause: str, *, stream: bool) -> dict[str, Any]:
    ceiling = 0 if cause == "422" else 6000
    if path == "/generate":
        return {"inputs": PROMPT, "parameters": {"max_new_tokens": ceiling}}
    return {**BODIES[path], "max_tokens": ceiling, "stream": stream}


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("path", PATHS)
def test_a_whole_answer_that_fails(url: str, path: str, cause: str) -> None:
    fault, status, error, error_type = CAUSES[cause]
    curl(f"{url}/_simulate/faults", data=fault)
    answer = curl(url + path, data=asked(path, cause, stream=False))
    assert answer.line == f"HTTP/1.1 {status}"
    assert answer.body == orjson.dumps({"error": error, "error_type": error_type})
    assert answer.head == {**JSON, "content-length": str(len(answer.body))}


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("path", PATHS)
def test_a_stream_that_fails_under_a_status_of_200(url: str, path: str, cause: str) -> None:
    fault, _, error, error_type = CAUSES[cause]
    characters = len(rendered(url)[0]) if "chat" in path else len(PROMPT)
    curl(f"{url}/_simulate/faults", data=fault)
    route = "/generate_stream" if path == "/generate" else path
    answer = curl(url + route, data=asked(path, cause, stream=True))
    if path == "/generate":
        end = framed([{"error": error, "error_type": error_type}])
    else:
        end = framed([{"error": {"message": error, "http_status_code": 422}}, "[DONE]"])
    assert answer.line == "HTTP/1.1 200 OK"
    assert answer.head == streamed(characters)
    if cause == "424":
        # What was generated before the failure stays.
        assert answer.body.startswith(b"data: {")
        assert answer.body.endswith(b"\n\n" + end)
        assert answer.body.count(b'"error"') == 1
    else:
        assert answer.body == end


REFUSED: dict[str, tuple[str, tuple[str, ...], bytes | None, str, dict[str, str], bytes]] = {
    "no such path": ("/nope", (), None, "404 Not Found", CORS, b""),
    "no such method": ("/generate", (), None, "405 Method Not Allowed", {**CORS, "allow": "POST"}, b""),
    "a body too long": (
        "/generate",
        (),
        b" " * 2_000_001,
        "413 Payload Too Large",
        PLAIN,
        b"Failed to buffer the request body: length limit exceeded",
    ),
    "no content type of JSON": (
        "/generate",
        ("-X", "POST", "-d", "{}"),
        None,
        "415 Unsupported Media Type",
        PLAIN,
        b"Expected request with `Content-Type: application/json`",
    ),
    "a field is missing": (
        "/generate",
        (),
        b"{}",
        "422 Unprocessable Entity",
        PLAIN,
        b"Failed to deserialize the JSON body into the target type: missing field `inputs` at line 1 column 1",
    ),
}


@pytest.mark.parametrize(("path", "options", "data", "status", "told", "body"), REFUSED.values(), ids=REFUSED)
def test_what_the_server_itself_refuses(
    url: str,
    path: str,
    options: tuple[str, ...],
    data: bytes | None,
    status: str,
    told: dict[str, str],
    body: bytes,
) -> None:
    answer = curl(url + path, *options, data=data)
    kept = {name: value for name, value in answer.head.items() if name != "connection"}
    assert (answer.line, answer.body) == (f"HTTP/1.1 {status}", body)
    assert kept == {**told, "content-length": str(len(body))}


def test_a_key_that_is_missing(tmp_path: Any) -> None:
    key = tmp_path / "key"
    key.write_text("Secret\n")
    with simulated_process(*QUICK, "--api-key-file", str(key)) as url:
        refused = curl(f"{url}/generate", data=NATIVE)
        served = curl(f"{url}/generate", "-H", "Authorization: bearer SECRET", data=NATIVE)
        open_to_all = curl(f"{url}/chat_tokenize", data=CHAT)
    assert (refused.line, refused.body) == ("HTTP/1.1 401 Unauthorized", b"")
    assert refused.head == {**CORS, "content-length": "0"}
    assert served.line == open_to_all.line == "HTTP/1.1 200 OK"
