"""Every failure that TGI tells, in a status and in a stream."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.engines.base import EngineFailure, UpstreamFault
from llmshed.engines.tgi.engine import TgiEngine
from llmshed.engines.tgi.failures import MAX_MESSAGE_CHARACTERS, read_event_failure

TOO_LONG = (
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192."
    " Given: 9000 `inputs` tokens and 1024 `max_new_tokens`"
)
ENVELOPES = [
    (429, "overloaded", "Model is overloaded", UpstreamFault.BUSY),
    (422, "validation", TOO_LONG, UpstreamFault.CLIENT),
    (422, "template_error", "Template error: syntax error", UpstreamFault.CLIENT),
    (422, "tool_error", "Tool error: Grammar and tools are mutually exclusive", UpstreamFault.CLIENT),
    (422, "missing_template_variable", "Missing template vatiable: tools", UpstreamFault.CLIENT),
    (424, "generation", "Request failed during generation: CUDA out of memory", UpstreamFault.ENGINE),
    (500, "incomplete_generation", "Incomplete generation", UpstreamFault.ENGINE),
    (500, "incomplete_generation_stream", "Incomplete generation stream", UpstreamFault.ENGINE),
    (500, "stream_serialization_error", "Stream event serialization error", UpstreamFault.ENGINE),
]
ANSWERS_ONLY = [
    (422, "suffix not supported", "Suffix is not supported and can be achieved by preprocessing", UpstreamFault.CLIENT),
    (422, "batch size exceeded", "Number of prompts exceeds the maximum allowed batch size of 4", UpstreamFault.CLIENT),
    (503, "healthcheck", "unhealthy", UpstreamFault.ENGINE),
]
PLAIN = [
    (400, "Failed to parse the request body as JSON: EOF while parsing", "validation", UpstreamFault.CLIENT),
    (413, "Failed to buffer the request body: length limit exceeded", "validation", UpstreamFault.CLIENT),
    (415, "Expected request with `Content-Type: application/json`", "validation", UpstreamFault.CLIENT),
    (422, "Failed to deserialize the JSON body into the target type: stop", "validation", UpstreamFault.CLIENT),
    (401, "", "generation", UpstreamFault.ENGINE),
    (404, "Not Found", "generation", UpstreamFault.ENGINE),
    (405, "", "generation", UpstreamFault.ENGINE),
    (429, "slow down", "overloaded", UpstreamFault.BUSY),
    (502, "<html>Bad Gateway</html>", "generation", UpstreamFault.ENGINE),
    (301, "", "generation", UpstreamFault.ENGINE),
]


@pytest.mark.parametrize(("status", "error_type", "text", "fault"), ENVELOPES + ANSWERS_ONLY)
def test_an_answer_in_the_envelope_tells_by_its_type(
    status: int, error_type: str, text: str, fault: UpstreamFault
) -> None:
    body = json.dumps({"error": text, "error_type": error_type}).encode()
    assert TgiEngine().read_failure(status, body) == EngineFailure(fault, status, text, error_type)


@pytest.mark.parametrize(("status", "text", "error_type", "fault"), PLAIN)
def test_an_answer_in_plain_text_tells_by_its_status(
    status: int, text: str, error_type: str, fault: UpstreamFault
) -> None:
    told = text or f"the engine answered {status} without a text"
    assert TgiEngine().read_failure(status, text.encode()) == EngineFailure(fault, status, told, error_type)


@pytest.mark.parametrize(("status", "error_type", "text", "fault"), ENVELOPES)
def test_an_event_of_a_native_stream_tells_by_its_type(
    status: int, error_type: str, text: str, fault: UpstreamFault
) -> None:
    event = {"error": text, "error_type": error_type}
    assert read_event_failure(event) == EngineFailure(fault, status, text, error_type)


@pytest.mark.parametrize(("status", "error_type", "text", "fault"), ENVELOPES)
def test_an_event_of_an_openai_stream_tells_by_its_text_since_its_status_is_always_422(
    status: int, error_type: str, text: str, fault: UpstreamFault
) -> None:
    event = {"error": {"message": text, "http_status_code": 422}}
    assert read_event_failure(event) == EngineFailure(fault, status, text, error_type)


@pytest.mark.parametrize("error", ["something new", {"message": "something new"}, {"message": 7}, {}, [], 7, True])
def test_an_event_of_an_unknown_error_is_the_engines_fault(error: object) -> None:
    failure = read_event_failure({"error": error, "error_type": ["overloaded"]})
    assert failure.fault is UpstreamFault.ENGINE
    assert failure.status == 500
    assert failure.error_type == "generation"
    assert failure.message


def test_an_openai_envelope_in_an_answer_is_read_too() -> None:
    body = b'{"error":{"message":"Model is overloaded","http_status_code":422}}'
    assert TgiEngine().read_failure(429, body).error_type == "overloaded"


def test_a_message_that_quotes_the_request_is_cut() -> None:
    text = "Input validation error: invalid image content " + "A" * 10_000
    assert len(TgiEngine().read_failure(422, json.dumps({"error": text}).encode()).message) == MAX_MESSAGE_CHARACTERS
    assert len(TgiEngine().read_failure(422, text.encode()).message) == MAX_MESSAGE_CHARACTERS


@given(st.integers(100, 599), st.binary())
def test_any_answer_is_a_failure_with_a_text(status: int, body: bytes) -> None:
    failure = TgiEngine().read_failure(status, body)
    assert failure.message
    assert failure.status == status


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"<html>Sign in</html>",
        b"\x1f\x8b\x08",
        b"null",
        b"[]",
        b"{}",
        b"[[]]",
        b"[null]",
        b"7",
        b'"text"',
        b"{",
    ],
)
def test_what_is_no_answer_is_a_failure_of_the_engine_whatever_its_status(body: bytes) -> None:
    failure = TgiEngine().find_failure(body)

    assert failure is not None
    assert (failure.fault, failure.error_type) == (UpstreamFault.ENGINE, "generation")


@pytest.mark.parametrize(
    ("body", "fault", "status"),
    [
        ({"error": "Model is overloaded", "error_type": "overloaded"}, UpstreamFault.BUSY, 429),
        ({"error": "Input validation error: no", "error_type": "validation"}, UpstreamFault.CLIENT, 422),
        ({"error": {"message": "boom"}}, UpstreamFault.ENGINE, 500),
    ],
)
def test_an_error_object_is_a_failure_under_a_status_of_200_too(
    body: dict[str, Any], fault: UpstreamFault, status: int
) -> None:
    failure = TgiEngine().find_failure(json.dumps(body).encode())

    assert failure is not None
    assert (failure.fault, failure.status) == (fault, status)


@pytest.mark.parametrize(
    "body", [{"generated_text": "a"}, [{"generated_text": ""}], {"choices": []}, {"choices": [], "error": None}]
)
def test_an_answer_of_any_route_shows_no_failure(body: object) -> None:
    assert TgiEngine().find_failure(json.dumps(body).encode()) is None
