"""The counting routes on prompts of many thousand tokens: listed exactly as short ones are, up to a bound."""

import pytest

from fakes.house import house
from fakes.texts import prose, text_of_tokens
from llmshed.gateway.door.tokenize import LISTED_TOKENS
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.load import embedded
from llmshed.tokenizing.prompts import TextPrompt


async def test_a_list_of_many_slices_is_whole_and_in_order() -> None:
    text = prose(60_000, seed=5)
    spans = build_counter(embedded(), "tgi").spans(TextPrompt(text))
    assert len(spans) > 3 * 4096
    async with house() as gate:
        native = (await gate.post("/tokenize", {"inputs": text})).json()
        chat = (await gate.post("/chat_tokenize", {"messages": [{"role": "user", "content": text}]})).json()
    assert native == [{"id": one.token_id, "text": one.text, "start": one.start, "stop": one.stop} for one in spans]
    listed = chat["tokenize_response"]
    assert "".join(token["text"] for token in listed[-len(spans) // 2 :]) in chat["templated_text"]
    assert listed[-1]["stop"] == len(chat["templated_text"].encode())


@pytest.mark.parametrize(("tokens", "status"), [(LISTED_TOKENS, 200), (LISTED_TOKENS + 1, 413)])
async def test_more_than_any_model_takes_are_refused_with_their_number(tokens: int, status: int) -> None:
    async with house() as gate:
        got = await gate.post("/tokenize", {"inputs": text_of_tokens(tokens)})
        assert got.status == status
        if status == 200:
            assert len(got.json()) == tokens
        else:
            assert got.reason == "context_limit"
            assert f"{tokens:,} tokens" in got.json()["error"]
            assert got.headers["x-llmshed-input-tokens"] == str(tokens)
