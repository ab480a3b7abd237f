"""Strings that are dear to tokenize: time beside prose, how long one step of a count holds its thread, and memory."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from llmshed.tokenizing.adapt import engine_tokenizer
from llmshed.tokenizing.bombs import BOMBS
from llmshed.tokenizing.load import find
from llmshed.tokenizing.paces import paces
from llmshed.tokenizing.selftest import MOST_BYTES, dear, ratios_to_prose
from llmshed.tokenizing.slices import MOST_EXPANDED_BYTES, MOST_UNCUT_BYTES

Find = Callable[[str], Path]

SIZES = (16_384, 131_072, 1_048_576)
BODY_BYTES = (MOST_EXPANDED_BYTES, MOST_UNCUT_BYTES, 2_000_000)
LARGEST_MODEL_TOKENS = 131_072
STEP_SECONDS = 2.0
SCRIPT = Path(__file__).parents[1] / "fakes" / "bomb_steps.py"
TOKENIZERS = ("embedded", "qwen3", "deepseek-v3", "mistral-7b-instruct-v0.3", "t5", "minilm-l6-v2")
EXPANDED = {"t5": {"ligature of a phrase"}}
"""What a normaliser expands by design is dearer than any bound on the ratio: it is bounded by characters instead."""


def place_of(tokenizer_directory: Find, name: str) -> str:
    return name if name == "embedded" else str(tokenizer_directory(name))


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_no_string_takes_long_beside_prose(tokenizer_directory: Find, name: str) -> None:
    tokenizer = engine_tokenizer(find(place_of(tokenizer_directory, name)), "tgi")
    measured = paces(tokenizer, SIZES, [unit for unit in BOMBS if unit not in EXPANDED.get(name, ())])
    assert [pace for pace in measured if pace.seconds is None] == [], "given up, and what follows was not tried"
    for size in SIZES:
        ratios = ratios_to_prose(measured, size)
        worst = max(ratios, key=lambda unit: ratios[unit])
        print(f"{name} {size:,}: {worst} {ratios[worst]} x prose")  # noqa: T201 - figures for whoever runs it with -s
        assert len(ratios) == len(BOMBS) - len(EXPANDED.get(name, ()))
        assert dear(measured, size) == {}


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_no_step_of_a_count_holds_its_thread_for_two_seconds_or_takes_much_memory(
    tokenizer_directory: Find, name: str
) -> None:
    sizes = map(str, (2 * LARGEST_MODEL_TOKENS, *BODY_BYTES))
    command = [sys.executable, str(SCRIPT), place_of(tokenizer_directory, name), *sizes]
    ran = subprocess.run(command, capture_output=True, check=True)
    told = orjson.loads(ran.stdout)
    worst = max(told["steps"], key=lambda unit: told["steps"][unit])
    grown = told["grown_bytes"] // 2**20
    print(f"{name}: {worst} {told['steps'][worst]:.2f} s, {grown} MiB")  # noqa: T201 - as above
    assert len(told["steps"]) == len(BOMBS)
    assert told["steps"][worst] < STEP_SECONDS
    assert told["grown_bytes"] <= MOST_BYTES
