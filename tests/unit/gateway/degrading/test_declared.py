"""The field `llmshed`: what is taken, and what is refused with its path, in calm times already."""

from typing import Any

import pytest

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError
from llmshed.gateway.degrading.declared import MOST_PARTS, NOTHING, Declared, Place, Span, read_declared, text_without

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "page one"}, {"type": "text", "text": "page two"}]},
    {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "search", "arguments": "{}"}}]},
    {"role": "tool", "content": "found", "tool_call_id": "1"},
    {"role": "user", "content": "And now?"},
]
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("search", "clock")]


def chat(given: Any, **more: Any) -> dict[str, Any]:
    return {"messages": CHAT, "tools": TOOLS, "llmshed": given, **more}


def test_what_is_said_is_read() -> None:
    given = {
        "enrichment": {"tools": ["search"], "parts": [{"message": 0}]},
        "context": {"parts": [{"message": 1, "part": 1}], "keep": 1},
    }
    assert read_declared(chat(given)) == Declared(("search",), (Place(0),), (Place(1, 1),), 1)


@pytest.mark.parametrize("given", [None, {}, {"enrichment": None}, {"context": {}}, {"context": {"parts": []}}])
def test_who_offers_nothing_offers_nothing(given: Any) -> None:
    assert read_declared(chat(given)) == NOTHING
    assert read_declared({"inputs": "text"}) == NOTHING


def test_spans_of_a_text_count_characters() -> None:
    text = "Frage: äöü? Kontext"
    declared = read_declared({"inputs": text, "llmshed": {"context": {"parts": [{"start": 11, "end": 19}]}}})
    assert declared.context == (Span(11, 19),)
    assert text_without(text, declared.context) == "Frage: äöü?"
    assert text_without("abcdef", (Span(4, 5), Span(0, 2))) == "cdf"


def part(**fields: Any) -> dict[str, Any]:
    return {"context": {"parts": [fields]}}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (part(message=5), "one of 5 messages"),
        (part(message=-1), "from 0"),
        (part(message=True), "from 0"),
        (part(message="1"), "from 0"),
        (part(message=1, part=2), "a list"),
        (part(message=0, part=0), "a list"),
        (part(message=4), "what is asked"),
        (part(message=3), "belong together"),
        (part(message=2), "belong together"),
        (part(part=0), "the place of a message"),
        ({"context": {"parts": [{"message": 0}, {"message": 0}]}}, "another one names too"),
        ({"context": {"parts": [{"message": 1, "part": 1}, {"message": 1}]}}, "another one names too"),
        ({"enrichment": {"parts": [{"message": 0}]}, "context": {"parts": [{"message": 0}]}}, "another one names too"),
        ({"context": {"parts": [{"message": 1, "part": 0}, {"message": 1, "part": 1}]}}, "a part stays"),
        ({"context": {"parts": [{"message": 0}], "keep": 2}}, "at most the 1 parts"),
        ({"context": {"parts": [], "keep": 0.5}}, "a whole number"),
        ({"enrichment": {"tools": ["weather"]}}, "one of the request's tools"),
        ({"enrichment": {"tools": ["search", "search"]}}, "once"),
        ({"enrichment": {"tools": "search"}}, "a list of at most"),
        ({"context": {"parts": [{"message": 0}] * (MOST_PARTS + 1)}}, "a list of at most 256"),
        ("yes", "an object"),
        ({"context": [1]}, "an object"),
        ({"context": {"parts": [7]}}, "an object"),
    ],
)
def test_what_cannot_be_left_out_is_refused_with_what_is_accepted(given: Any, told: str) -> None:
    with pytest.raises(BodyError, match=told) as caught:
        read_declared(chat(given))
    assert caught.value.reason is Reason.MALFORMED
    assert (caught.value.param or "").startswith("llmshed")


@pytest.mark.parametrize(
    "given", [{"contxt": {}}, {"context": {"part": []}}, {"context": {"parts": [{"message": 0, "order": 1}]}}]
)
def test_an_unknown_field_is_refused_by_the_place_where_it_stands(given: Any) -> None:
    with pytest.raises(BodyError, match="accepted: ") as caught:
        read_declared(chat(given))
    assert caught.value.reason is Reason.UNSUPPORTED_FIELD


@pytest.mark.parametrize(
    ("span", "told"),
    [
        ({"start": 3, "end": 3}, "start below its end"),
        ({"start": 0, "end": 12}, "at most 11"),
        ({"start": 0, "end": 11}, "something stays"),
        ({"message": 0}, "accepted: "),
    ],
)
def test_spans_are_held_to_their_text(span: dict[str, int], told: str) -> None:
    with pytest.raises(BodyError, match=told):
        read_declared({"inputs": "eleven char", "llmshed": {"context": {"parts": [span]}}})


def test_several_prompts_have_no_parts() -> None:
    with pytest.raises(BodyError, match="several prompts"):
        read_declared({"prompt": ["a", "b"], "llmshed": {"context": {"parts": [{"start": 0, "end": 1}]}}})


def test_a_chat_keeps_a_message_though_nobody_asks() -> None:
    body = {"messages": [{"role": "system", "content": "a"}], "llmshed": part(message=0)}
    with pytest.raises(BodyError, match="a message stays"):
        read_declared(body)


@pytest.mark.parametrize("chosen", [{"type": "function", "function": {"name": "search"}}, "search"])
def test_a_tool_that_is_asked_for_is_no_enrichment(chosen: Any) -> None:
    """TGI takes the bare name as well."""
    with pytest.raises(BodyError, match="tool_choice"):
        read_declared(chat({"enrichment": {"tools": ["search"]}}, tool_choice=chosen))
    assert read_declared(chat({"enrichment": {"tools": ["clock"]}}, tool_choice=chosen)).tools == ("clock",)


def test_a_choice_among_all_tools_asks_for_none_by_name() -> None:
    tools = [{"type": "function", "function": {"name": "auto"}}, *TOOLS]
    given = {"enrichment": {"tools": ["auto"]}}
    assert read_declared({**chat(given, tool_choice="auto"), "tools": tools}).tools == ("auto",)
