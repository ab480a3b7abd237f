"""The answers of the counting routes."""

import orjson
import pytest

from llmshed.engines.base import Route
from llmshed.engines.registry import engine
from llmshed.engines.tgi.counts import STEP_BYTES
from llmshed.errors import EngineError

TOKEN = b'{"id":1,"text":"a","start":0,"stop":1}'


@pytest.mark.parametrize(
    ("route", "body", "count"),
    [
        (Route.TOKENIZE, b"[]", 0),
        (Route.TOKENIZE, b"[" + TOKEN + b"," + TOKEN + b"]", 2),
        (Route.CHAT_TOKENIZE, b'{"tokenize_response":[' + TOKEN + b'],"templated_text":"a"}', 1),
    ],
)
def test_the_tokens_of_an_answer_are_counted(route: Route, body: bytes, count: int) -> None:
    assert engine("tgi").read_token_count(route, body) == count


@pytest.mark.parametrize(
    ("route", "body"),
    [
        (Route.TOKENIZE, b"{"),
        (Route.TOKENIZE, b'{"tokenize_response":[]}'),
        (Route.CHAT_TOKENIZE, b"[]"),
        (Route.CHAT_TOKENIZE, b'{"tokenize_response":3}'),
        (Route.CHAT_TOKENIZE, b""),
    ],
)
def test_another_form_is_named_by_its_route(route: Route, body: bytes) -> None:
    with pytest.raises(EngineError, match=route.value):
        engine("tgi").read_token_count(route, body)


@pytest.mark.parametrize("route", [Route.TOKENIZE, Route.CHAT_TOKENIZE])
def test_a_long_answer_is_counted_by_its_keys_wherever_they_are_cut(route: Route) -> None:
    texts = [("ab" * (number % 50) + '"id":' + "\\" * (number % 3)) for number in range(150_000)]
    tokens = [{"id": 1, "text": text, "start": 0, "stop": 1} for text in texts]
    body = orjson.dumps(
        {"tokenize_response": tokens, "templated_text": '"id":'} if route is Route.CHAT_TOKENIZE else tokens
    )
    assert len(body) > 2 * STEP_BYTES
    assert engine("tgi").read_token_count(route, body) == 150_000
