import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes.quietest import quietest
from llmshed.tokenizing.adapt import engine_tokenizer
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.encode import ReferenceCounter
from llmshed.tokenizing.load import embedded, from_directory
from llmshed.tokenizing.prompts import TextPrompt


def test_a_batch_is_counted_text_by_text() -> None:
    counter = ReferenceCounter(engine_tokenizer(embedded(), "tgi"))
    texts = ["", "a", "a longer text <|im_end|>"]
    alone = [counter.counts([text], add_special_tokens=False)[0] for text in texts]
    assert counter.counts(texts, add_special_tokens=False) == alone
    assert counter.counts([], add_special_tokens=True) == []


def test_a_padding_tokenizer_does_not_pad_texts_to_each_other(tokenizer_directory: Callable[[str], Path]) -> None:
    tokenizer = engine_tokenizer(from_directory(tokenizer_directory("minilm-l6-v2")), "vllm")
    tokenizer.enable_padding()
    counter = ReferenceCounter(tokenizer)
    assert counter.counts(["one", "one two three"], add_special_tokens=True) == [3, 5]


@pytest.mark.parametrize("cache_bytes", [0, 10**7])
@pytest.mark.slow
async def test_counting_a_megabyte_in_a_thread_leaves_other_threads_running(cache_bytes: int) -> None:
    async def measured() -> float:
        return gap_while_counting(cache_bytes)

    # `encode` would hold the lock for the whole second. The bound is wide: other work may share the machine.
    assert await quietest(measured, 0.1) < 0.1


def gap_while_counting(cache_bytes: int) -> float:
    """Count a megabyte in a thread and return how long this one had to wait at most."""
    counter = build_counter(embedded(), "tgi", cache_bytes=cache_bytes)
    prompt = TextPrompt("The queue grew faster than it drained. <<|im_start|" * 20_000)
    counted = threading.Thread(target=counter.count, args=(prompt,))
    longest = 0.0
    ticks = 0
    counted.start()
    last = time.perf_counter()
    while counted.is_alive():
        time.sleep(0.001)
        now = time.perf_counter()
        longest, last, ticks = max(longest, now - last), now, ticks + 1
    assert ticks > 20  # else the count was too quick to prove anything
    return longest
