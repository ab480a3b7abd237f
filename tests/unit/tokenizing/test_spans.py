"""Where each token of a prompt stands, against the bytes of the prompt itself."""

import pytest

from llmshed.errors import PromptError
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.counter import ExactCounter
from llmshed.tokenizing.load import embedded
from llmshed.tokenizing.prompts import TextPrompt


@pytest.fixture(scope="module")
def counter() -> ExactCounter:
    return build_counter(embedded(), "tgi")


@pytest.mark.parametrize(
    "text",
    ["The gate admits by tokens.", "Größe, naïve, 日本語 and 한국어", "👩‍👩‍👧 emoji 🏳️‍🌈", " \n\t\u2028", ""],
)
def test_spans_name_the_bytes_of_the_prompt_in_order(counter: ExactCounter, text: str) -> None:
    prompt = TextPrompt(text)
    spans = counter.spans(prompt)
    raw = text.encode()
    assert len(spans) == counter.count(prompt).tokens
    assert [span.token_id for span in spans] == [token.token_id for token in counter.tokens(prompt)]
    placed = [span for span in spans if span.stop > 0]
    assert all(raw[span.start : span.stop].decode() == span.text for span in placed)
    assert [span.start for span in placed] == sorted(span.start for span in placed)
    assert {byte for span in placed for byte in range(span.start, span.stop)} == set(range(len(raw)))


def test_half_a_surrogate_pair_has_no_spans(counter: ExactCounter) -> None:
    with pytest.raises(PromptError, match="not Unicode"):
        counter.spans(TextPrompt("a\ud800"))
