"""OpenAI's envelope of errors, as engines fill it and as other servers do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.engines.base import EngineFailure, UpstreamFault
from llmshed.engines.openai_failures import MAX_MESSAGE_CHARACTERS, read_openai_answer, read_openai_event

CLIENT, BUSY, ENGINE = UpstreamFault.CLIENT, UpstreamFault.BUSY, UpstreamFault.ENGINE


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        (400, b'{"error":{"code":400,"message":"too long","type":"exceed"}}', (CLIENT, "too long", "exceed")),
        (404, b'{"error":{"message":"no model","type":"NotFoundError"}}', (CLIENT, "no model", "NotFoundError")),
        (503, b'{"error":{"message":"Loading model","type":"x","code":503}}', (ENGINE, "Loading model", "x")),
        (503, b'{"error":{"message":"it is full today"}}', (BUSY, "it is full today", "error")),
        (500, b'{"error":{"message":"it is full today"}}', (ENGINE, "it is full today", "error")),
        (429, b"slow down", (BUSY, "slow down", "error")),
        (502, b"<html>", (ENGINE, "<html>", "error")),
        (500, b'{"error":"broken"}', (ENGINE, "broken", "error")),
        (500, b"", (ENGINE, "the engine told 500 alone", "error")),
        (500, b'{"error":{"message":7,"type":[]}}', (ENGINE, "the engine told 500 alone", "error")),
    ],
)
def test_an_answer_tells_who_is_to_blame(status: int, body: bytes, failure: tuple[UpstreamFault, str, str]) -> None:
    fault, message, error_type = failure
    assert read_openai_answer(status, body, ("full",)) == EngineFailure(fault, status, message, error_type)


@pytest.mark.parametrize(
    ("error", "fault", "status"),
    [
        ({"message": "it is full", "code": 503}, BUSY, 503),
        ({"message": "wrong", "code": 400}, CLIENT, 400),
        ({"message": "wrong", "code": 200}, ENGINE, 500),
        ({"message": "wrong", "code": "400"}, ENGINE, 500),
        ({"message": "wrong"}, ENGINE, 500),
        ("wrong", ENGINE, 500),
    ],
)
def test_an_event_tells_the_status_that_it_would_have_had(error: object, fault: UpstreamFault, status: int) -> None:
    failure = read_openai_event({"error": error}, ("full",))
    assert (failure.fault, failure.status) == (fault, status)


@given(st.integers(400, 599), st.binary(max_size=60) | st.just(b'{"error":{"message":"' + b"x" * 9000 + b'"}}'))
def test_no_body_raises_and_none_is_told_in_whole(status: int, body: bytes) -> None:
    assert 0 < len(read_openai_answer(status, body).message) <= MAX_MESSAGE_CHARACTERS
