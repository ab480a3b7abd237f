"""What goes to TGI, and what whole answers tell."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.engines.base import Call, Route
from llmshed.engines.tgi.engine import TgiEngine
from llmshed.tokenizing.prompts import TextPrompt

MESSAGES = [{"role": "user", "content": "Hello"}]


def written(route: Route, body: dict[str, Any], ceiling: int = 99) -> bytes:
    engine = TgiEngine(allow_truncate=True)
    return engine.write_body(engine.read_call(route, body), ceiling)


@pytest.mark.parametrize(
    ("route", "sent", "wire"),
    [
        (
            Route.GENERATE,
            '{"inputs":"a","parameters":{"max_new_tokens":5,"temperature":0.5}}',
            '{"inputs":"a","parameters":{"max_new_tokens":99,"temperature":0.5}}',
        ),
        (
            Route.GENERATE,
            '{"parameters":{"stop":"\\n","details":true,"seed":null},"inputs":"a"}',
            '{"parameters":{"stop":["\\n"],"details":true,"max_new_tokens":99},"inputs":"a"}',
        ),
        (Route.ROOT, '{"inputs":"a"}', '{"inputs":"a","parameters":{"do_sample":true,"max_new_tokens":99}}'),
        (
            Route.ROOT,
            '{"inputs":"a","parameters":null,"stream":true}',
            '{"inputs":"a","stream":true,"parameters":{"do_sample":true,"max_new_tokens":99}}',
        ),
        (Route.ROOT, '{"inputs":"a","parameters":{}}', '{"inputs":"a","parameters":{"max_new_tokens":99}}'),
        (
            Route.GENERATE_STREAM,
            '{"inputs":"a","stream":true,"options":{"use_cache":false},"parameters":{"do_sample":false}}',
            '{"inputs":"a","parameters":{"do_sample":false,"max_new_tokens":99}}',
        ),
        (
            Route.CHAT,
            '{"model":"m","max_completion_tokens":5,"messages":[{"role":"user","content":"a"}],"user":"u","store":true}',
            '{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"a"}]}',
        ),
        (
            Route.CHAT,
            '{"messages":[{"role":"user","content":"a"}],"stop":"x","n":2,"seed":null,"service_tier":"flex"}',
            '{"messages":[{"role":"user","content":"a"}],"stop":["x"],"n":2,"max_tokens":99}',
        ),
        (
            Route.CHAT,
            '{"messages":[{"role":"user","content":"a"}],"stream_options":{"include_usage":true,"include_obfuscation":true}}',
            '{"messages":[{"role":"user","content":"a"}],"stream_options":{"include_usage":true},"max_tokens":99}',
        ),
        (
            Route.COMPLETIONS,
            '{"prompt":["a","b"],"logprobs":1,"presence_penalty":0,"max_tokens":5,"temperature":0}',
            '{"prompt":["a","b"],"max_tokens":99,"temperature":0}',
        ),
        (Route.TOKENIZE, '{"inputs":"a","parameters":{"max_new_tokens":5}}', '{"inputs":"a"}'),
        (
            Route.CHAT_TOKENIZE,
            '{"messages":[{"role":"user","content":"a"}],"max_tokens":5}',
            '{"messages":[{"role":"user","content":"a"}],"max_tokens":5}',
        ),
    ],
)
def test_the_wire_holds_the_ceiling_in_force_and_only_what_tgi_reads(route: Route, sent: str, wire: str) -> None:
    assert written(route, json.loads(sent)).decode() == wire


def test_no_field_survives_that_another_reader_could_read_otherwise() -> None:
    names = list(json.loads(written(Route.CHAT, {"messages": MESSAGES, "max_completion_tokens": 7})))
    assert names == ["messages", "max_tokens"]


@given(st.text(min_size=1).filter(lambda text: "![](" not in text), st.integers(1, 2**31 - 1))
def test_any_text_reaches_the_engine_unchanged_with_any_ceiling(text: str, ceiling: int) -> None:
    native = json.loads(written(Route.GENERATE, {"inputs": text, "parameters": {}}, ceiling))
    assert native == {"inputs": text, "parameters": {"max_new_tokens": ceiling}}
    messages = [{"role": "user", "content": text}]
    assert json.loads(written(Route.CHAT, {"messages": messages}, ceiling)) == {
        "messages": messages,
        "max_tokens": ceiling,
    }


def test_a_call_is_written_again_with_another_ceiling() -> None:
    engine = TgiEngine()
    call = engine.read_call(Route.GENERATE, {"inputs": "a"})
    first = json.loads(engine.write_body(call, 10))
    second = json.loads(engine.write_body(call, 20))
    assert (first["parameters"]["max_new_tokens"], second["parameters"]["max_new_tokens"]) == (10, 20)


def told(route: Route, headers: dict[str, str], answer: object, copies: int = 1) -> int | None:
    call = Call(route, {}, streamed=False, model=None, prompts=(TextPrompt("a"),), copies=copies)
    return TgiEngine().read_output_tokens(call, headers, json.dumps(answer).encode())


DETAILS = {"finish_reason": "length", "generated_tokens": 5, "seed": 7}


@pytest.mark.parametrize(
    ("route", "headers", "answer", "tokens"),
    [
        (Route.GENERATE, {"x-generated-tokens": "12"}, {"generated_text": "a"}, 12),
        (Route.ROOT, {"X-Generated-Tokens": "12"}, [{"generated_text": "a"}], 12),
        (Route.CHAT, {"x-generated-tokens": "12"}, {}, 12),
        (Route.COMPLETIONS, {"x-generated-tokens": "24"}, {}, 24),
        (Route.GENERATE, {}, {"generated_text": "a", "details": DETAILS}, 5),
        (Route.ROOT, {}, [{"generated_text": "a", "details": DETAILS}], 5),
        (Route.CHAT, {}, {"usage": {"completion_tokens": 6}}, 6),
        (Route.COMPLETIONS, {}, {"usage": {"completion_tokens": 7}}, 7),
        (Route.GENERATE, {}, {"generated_text": "a"}, None),
        (Route.GENERATE, {"x-generated-tokens": "-1"}, {}, None),
        (Route.GENERATE, {"x-generated-tokens": "1e3"}, {}, None),
        (Route.GENERATE, {"x-generated-tokens": "\u0663"}, {}, None),
        (Route.GENERATE, {"x-generated-tokens": "9" * 5000}, {}, None),
        (Route.GENERATE, {"x-generated-tokens": ""}, {"details": DETAILS}, 5),
        (Route.CHAT, {}, {"usage": {"completion_tokens": True}}, None),
        (Route.CHAT, {}, {"usage": []}, None),
        (Route.ROOT, {}, [], None),
        (Route.ROOT, {}, [7], None),
        (Route.TOKENIZE, {"x-generated-tokens": "12"}, [], None),
        (Route.CHAT_TOKENIZE, {}, {}, None),
    ],
)
def test_the_tokens_of_a_whole_answer_are_told_by_header_or_body(
    route: Route, headers: dict[str, str], answer: object, tokens: int | None
) -> None:
    assert told(route, headers, answer) == tokens


def test_best_of_is_told_by_the_details_of_all_its_sequences_or_not_at_all() -> None:
    others = [{"generated_tokens": 9}, {"generated_tokens": 3}]
    header = {"x-generated-tokens": "5"}
    assert told(Route.GENERATE, header, {"details": {**DETAILS, "best_of_sequences": others}}, copies=3) == 17
    assert told(Route.ROOT, header, [{"details": {**DETAILS, "best_of_sequences": others}}], copies=3) == 17
    assert told(Route.GENERATE, header, {"details": {**DETAILS, "best_of_sequences": others[:1]}}, copies=3) is None
    assert told(Route.GENERATE, header, {"details": DETAILS}, copies=3) is None
    assert told(Route.GENERATE, header, {"details": DETAILS}, copies=2) is None
    assert told(Route.GENERATE, header, {"generated_text": "a"}, copies=3) is None


def test_a_chat_runs_once_whatever_n_says_so_its_header_tells_all() -> None:
    assert told(Route.CHAT, {"x-generated-tokens": "5"}, {}, copies=3) == 5


@given(st.binary(), st.dictionaries(st.sampled_from(["x-generated-tokens", "other"]), st.text()))
def test_any_answer_tells_a_number_or_nothing(body: bytes, headers: dict[str, str]) -> None:
    call = Call(Route.ROOT, {}, streamed=False, model=None, prompts=(TextPrompt("a"),))
    tokens = TgiEngine().read_output_tokens(call, headers, body)
    assert tokens is None or tokens >= 0
