"""Counting by cached segments equals counting whole, wherever it is switched on at all."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.counter import ExactCounter
from llmshed.tokenizing.load import embedded, from_directory
from llmshed.tokenizing.prompts import TextPrompt
from llmshed.tokenizing.segments import SegmentCounter


@pytest.fixture(scope="module", params=["embedded", "qwen3", "deepseek-v3"])
def pair(
    request: pytest.FixtureRequest, tokenizer_directory: Callable[[str], Path]
) -> tuple[ExactCounter, ExactCounter]:
    name = request.param
    files = embedded() if name == "embedded" else from_directory(tokenizer_directory(name))
    segmented, whole = build_counter(files, "tgi", cache_bytes=200_000), build_counter(files, "tgi")
    assert isinstance(segmented._texts, SegmentCounter)
    return segmented, whole


@pytest.mark.slow
@pytest.mark.timeout(300)
@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(data=st.data(), special=st.booleans())
def test_segments_add_up_to_the_whole(
    pair: tuple[ExactCounter, ExactCounter],
    data: st.DataObject,
    special: bool,  # noqa: FBT001 - hypothesis passes by name
) -> None:
    segmented, whole = pair
    added = sorted(token.content for token in whole._tokenizer.get_added_tokens_decoder().values())
    joints = st.sampled_from(
        [" ", "  ", "\n", "\n\n", "\u0301", "e", "12", "'s", "\u200d", "<", "<|", "|>", "\u65e5", "\u1161\u11a8"]
    )
    words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    text = data.draw(st.lists(st.sampled_from(added) | joints | words, max_size=12).map("".join))
    prompt = TextPrompt(text, add_special_tokens=special)
    assert segmented.count(prompt).tokens == whole.count(prompt).tokens
    assert segmented.count(prompt).tokens == whole.count(prompt).tokens  # now from the cache
