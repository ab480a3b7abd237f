from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.reference_counts import chat_of, expected_chats
from llmshed.emulator.vocabulary import Vocabulary
from llmshed.errors import PromptError
from llmshed.tokenizing.chat_request import chat_prompt
from llmshed.tokenizing.load import find

EMBEDDED = Vocabulary(find("embedded"))


@given(st.text(max_size=200))
def test_tokens_cover_the_bytes_of_the_text_in_order(text: str) -> None:
    tokens = EMBEDDED.tokens(text, add_special_tokens=False)
    size = len(text.encode())
    assert all(0 <= token["start"] <= token["stop"] <= size for token in tokens)
    assert [token["start"] for token in tokens] == sorted(token["start"] for token in tokens)
    assert len(tokens) == EMBEDDED.count(text, add_special_tokens=False)


def test_a_token_tells_its_id_its_text_and_its_bytes() -> None:
    tokens = EMBEDDED.tokens("naïve", add_special_tokens=False)
    assert tokens[-1]["stop"] == 6
    assert all(token.keys() == {"id", "text", "start", "stop"} for token in tokens)


def test_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(PromptError):
        EMBEDDED.tokens("\ud800", add_special_tokens=False)


@given(st.text(max_size=100))
def test_a_text_is_spelled_without_loss(text: str) -> None:
    assert "".join(piece.text for piece in EMBEDDED.spell(text)) == text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qwen3", "mistral-7b-instruct-v0.3", "t5", "minilm-l6-v2"])
def test_any_tokenizer_has_words_to_write_with(tokenizer_directory: Callable[[str], Path], name: str) -> None:
    vocabulary = Vocabulary(find(str(tokenizer_directory(name))))
    assert len({piece.text for piece in vocabulary.words}) > 100
    assert all(piece.text.strip().isalpha() for piece in vocabulary.words)


@pytest.mark.slow
def test_chats_count_as_the_reference_says_tgi_counts_them(
    tokenizer_directory: Callable[[str], Path], data_dir: Path
) -> None:
    vocabulary = Vocabulary(find(str(tokenizer_directory("qwen3"))))
    checked = 0
    for case, tokenizer, expected in expected_chats(data_dir, "tgi"):
        if tokenizer == "qwen3" and "prompt_tokens" in expected:
            text = vocabulary.render(chat_prompt(chat_of(case)))
            assert vocabulary.count(text, add_special_tokens=False) == expected["prompt_tokens"], case["id"]
            checked += 1
    assert checked > 10
