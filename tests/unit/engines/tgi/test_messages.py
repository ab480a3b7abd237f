"""Messages of a chat: what TGI reads of them, and nothing else."""

from typing import Any

import pytest

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError
from llmshed.engines.tgi.messages import read_messages

CALL = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def refusal(message: dict[str, Any]) -> BodyError:
    with pytest.raises(BodyError) as caught:
        read_messages([{"role": "user", "content": "fine"}, message])
    return caught.value


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ({"role": "user", "content": "a"}, {"role": "user", "content": "a"}),
        ({"role": "user", "content": ""}, {"role": "user", "content": ""}),
        ({"content": "a", "role": "robot", "name": "b"}, {"content": "a", "role": "robot", "name": "b"}),
        ({"role": "user", "content": []}, {"role": "user", "content": []}),
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, {"role": "assistant", "tool_calls": [CALL]}),
        (
            {"role": "tool", "content": "7", "tool_call_id": "call_0", "name": None, "tool_calls": None},
            {"role": "tool", "content": "7"},
        ),
        (
            # An answer of openai's client, as its user appends it to the conversation.
            {
                "content": "a",
                "refusal": None,
                "role": "assistant",
                "annotations": [],
                "audio": None,
                "function_call": None,
                "tool_calls": None,
                "reasoning_content": "because",
            },
            {"content": "a", "role": "assistant"},
        ),
        (
            {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a", "detail": "low"}}]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a"}}]},
        ),
    ],
)
def test_a_message_is_kept_without_what_tgi_leaves_out(message: dict[str, Any], kept: dict[str, Any]) -> None:
    assert read_messages([message]) == [kept]


@pytest.mark.parametrize(
    ("message", "reason", "param"),
    [
        ({}, Reason.MALFORMED, "messages[1].role"),
        ({"role": None, "content": "a"}, Reason.MALFORMED, "messages[1].role"),
        ({"role": 1, "content": "a"}, Reason.MALFORMED, "messages[1].role"),
        ({"role": "user"}, Reason.MALFORMED, "messages[1].content"),
        ({"role": "user", "content": None}, Reason.MALFORMED, "messages[1].content"),
        ({"role": "user", "content": 7}, Reason.MALFORMED, "messages[1].content"),
        ({"role": "user", "content": {"text": "a"}}, Reason.MALFORMED, "messages[1].content"),
        ({"role": "assistant", "tool_calls": {}}, Reason.MALFORMED, "messages[1].tool_calls"),
        ({"role": "user", "contents": "a"}, Reason.UNSUPPORTED_FIELD, "messages[1].contents"),
        ({"role": "user", "content": "a", "images": ["x"]}, Reason.UNSUPPORTED_FIELD, "messages[1].images"),
        ({"role": "user", "content": ["a"]}, Reason.MALFORMED, "messages[1].content[0]"),
        ({"role": "user", "content": [{}]}, Reason.MALFORMED, "messages[1].content[0].type"),
        ({"role": "user", "content": [{"type": 1}]}, Reason.MALFORMED, "messages[1].content[0].type"),
        ({"role": "user", "content": [{"type": "text"}]}, Reason.MALFORMED, "messages[1].content[0].text"),
        ({"role": "user", "content": [{"type": "text", "text": 1}]}, Reason.MALFORMED, "messages[1].content[0].text"),
        (
            {"role": "user", "content": [{"type": "text", "text": "a", "txt": "b"}]},
            Reason.UNSUPPORTED_FIELD,
            "messages[1].content[0].txt",
        ),
        (
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]},
            Reason.UNSUPPORTED_FIELD,
            "messages[1].content[0].type",
        ),
        (
            {"role": "user", "content": [{"type": "image_url"}]},
            Reason.MALFORMED,
            "messages[1].content[0].image_url",
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": "http://a"}]},
            Reason.MALFORMED,
            "messages[1].content[0].image_url",
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {}}]},
            Reason.MALFORMED,
            "messages[1].content[0].image_url.url",
        ),
    ],
)
def test_a_message_of_another_form_is_refused_with_its_place(
    message: dict[str, Any], reason: Reason, param: str
) -> None:
    error = refusal(message)
    assert (error.reason, error.param) == (reason, param)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a", "//a", "a.png", "", "javascript:1", " http://a"])
def test_an_image_comes_by_http_or_with_the_request(url: str) -> None:
    error = refusal({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]})
    assert error.param == "messages[1].content[0].image_url.url"
    assert "http://, https:// or data:" in str(error)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({}, "`messages[1].role` is missing; send a string"),
        (
            {"role": "user"},
            "`messages[1].content` is missing; send a string or a list of parts, unless the message holds tool_calls",
        ),
        ({"role": "user", "content": [{"type": "text"}]}, "`messages[1].content[0].text` is missing; send a string"),
        ({"role": "user", "content": 7}, "`messages[1].content` must be a string or a list of parts, not 7"),
    ],
)
def test_what_is_missing_is_told_as_missing(message: dict[str, Any], told: str) -> None:
    assert str(refusal(message)) == told
