"""Strings that are dear to tokenize: time beside prose, memory, and how long one step of a count holds its thread."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from llmshed.errors import PromptError
from llmshed.tokenizing.adapt import engine_tokenizer
from llmshed.tokenizing.bombs import BOMBS, bomb
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.files import TokenizerFiles
from llmshed.tokenizing.load import embedded, from_directory
from llmshed.tokenizing.paces import paces
from llmshed.tokenizing.prompts import TextPrompt
from llmshed.tokenizing.selftest import MOST_BYTES, MOST_RATIO, ratios_to_prose

Find = Callable[[str], Path]

SIZES = (16_384, 131_072, 1_048_576)
BODY_BYTES = 2_000_000
LARGEST_MODEL_TOKENS = 131_072
STEP_SECONDS = 2.0
TOKENIZERS = ("embedded", "qwen3", "deepseek-v3", "mistral-7b-instruct-v0.3", "t5", "minilm-l6-v2")


def files_of(find: Find, name: str) -> TokenizerFiles:
    return embedded() if name == "embedded" else from_directory(find(name))


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_no_string_takes_long_beside_prose_or_much_memory(tokenizer_directory: Find, name: str) -> None:
    measured = paces(engine_tokenizer(files_of(tokenizer_directory, name), "tgi"), SIZES)
    for size in SIZES:
        ratios = ratios_to_prose(measured, size)
        assert len(ratios) == len(BOMBS)
        worst = max(ratios, key=lambda one: ratios[one])
        print(f"{name} {size:,}: {worst} {ratios[worst]} x prose")  # noqa: T201 - figures for whoever runs it with -s
        assert ratios[worst] <= MOST_RATIO
    assert max(one.peak_bytes or 0 for one in measured) <= MOST_BYTES


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_no_step_of_a_count_holds_its_thread_for_two_seconds(tokenizer_directory: Find, name: str) -> None:
    counter = build_counter(files_of(tokenizer_directory, name), "tgi")
    for unit in BOMBS:
        steps = counter.steps(TextPrompt(bomb(unit, BODY_BYTES)), 2 * LARGEST_MODEL_TOKENS)
        longest = 0.0
        began = time.process_time()
        try:
            for _ in steps:
                longest, began = max(longest, time.process_time() - began), time.process_time()
        except PromptError as error:
            longest = max(longest, time.process_time() - began)
            assert "in one piece" in str(error)  # noqa: PT017 - refused is as good as counted
        assert longest < STEP_SECONDS, unit
