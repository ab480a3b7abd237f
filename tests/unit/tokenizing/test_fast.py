import builtins
from collections.abc import Sequence
from typing import Any

import pytest

from llmshed.errors import TokenizerError
from llmshed.tokenizing import fast
from llmshed.tokenizing.adapt import engine_tokenizer
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.encode import ReferenceCounter
from llmshed.tokenizing.fast import FastCounter
from llmshed.tokenizing.load import embedded
from llmshed.tokenizing.probes import PROBE_TEXTS
from llmshed.tokenizing.prompts import TextPrompt


class Library:
    """Stands for fastokens: one token a character, but `wrong` for the texts that hold it."""

    def __init__(self, wrong: str = "\0", fails: str = "\0") -> None:
        self.wrong, self.fails, self.calls = wrong, fails, 0

    def encode_batch(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[list[int]]:
        self.calls += 1
        if any(self.fails in text for text in texts):
            raise RuntimeError("broken")
        return [[0] * (len(text) + add_special_tokens + (self.wrong in text)) for text in texts]


class Reference:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def counts(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[int]:
        self.asked += texts
        return [len(text) + add_special_tokens for text in texts]


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    def build(library: Library, sample_every: int = 1000) -> tuple[FastCounter, Reference, list[str]]:
        monkeypatch.setattr(fast, "_load", lambda _: library)
        told: list[str] = []
        reference = Reference()
        return FastCounter("{}", reference, sample_every=sample_every, on_mismatch=told.append), reference, told

    return build


def test_an_equal_library_is_trusted_and_used_alone(parts: Any) -> None:
    counter, reference, told = parts(Library())
    assert counter.check(["a", "bc"])
    reference.asked.clear()
    assert counter.counts(["abc"], add_special_tokens=True) == [4]
    assert (reference.asked, told) == ([], [])


def test_a_difference_on_a_probe_text_ends_its_use(parts: Any) -> None:
    counter, _, told = parts(Library(wrong="b"))
    assert not counter.check(["a", "bc"])
    assert counter.counts(["bc"], add_special_tokens=False) == [2]
    assert told == ["fastokens counted 4 tokens for 3 in a probe text; counting goes on with the tokenizers library"]


def test_every_nth_text_is_compared_and_the_first_difference_ends_its_use(parts: Any) -> None:
    library = Library(wrong="x")
    counter, reference, told = parts(library, sample_every=3)
    assert [counter.counts([text], add_special_tokens=False) for text in ("x", "ax")] == [[2], [3]]
    # The third text is the sampled one, and already told as the reference counts it.
    assert counter.counts(["bbx"], add_special_tokens=False) == [3]
    assert (reference.asked, counter.trusted, len(told)) == (["bbx"], False, 1)
    calls = library.calls
    assert counter.counts(["x"], add_special_tokens=False) == [1]
    assert library.calls == calls
    assert "x" not in told[0].replace("text", "")


def test_a_library_that_fails_is_dropped_and_the_text_is_counted(parts: Any) -> None:
    counter, _, told = parts(Library(fails="!"))
    assert counter.counts(["a!"], add_special_tokens=True) == [3]
    assert not counter.trusted
    assert told == ["fastokens failed (RuntimeError); counting goes on with the tokenizers library"]


def test_without_the_extra_the_error_tells_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch)
    with pytest.raises(TokenizerError, match=r"pip install 'llmshed\[fast\]'"):
        FastCounter("{}", Reference(), on_mismatch=print)


def test_a_counter_is_built_without_the_extra_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hide(monkeypatch)
    counter = build_counter(embedded(), "tgi", fastokens=True)
    assert isinstance(counter._texts, ReferenceCounter)
    assert "fastokens is not installed" in caplog.text


def test_the_library_itself_agrees_on_the_embedded_tokenizer() -> None:
    pytest.importorskip("fastokens", reason="the extra `fast` is not installed")
    tokenizer = engine_tokenizer(embedded(), "tgi")
    counter = FastCounter(tokenizer.to_str(), ReferenceCounter(tokenizer), on_mismatch=pytest.fail)
    assert counter.check([*PROBE_TEXTS.values(), "x" * 5000])
    built = build_counter(embedded(), "tgi", fastokens=True)
    assert isinstance(built._texts, FastCounter)
    assert built.count(TextPrompt("Hello")) == build_counter(embedded(), "tgi").count(TextPrompt("Hello"))


def hide(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def importing(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("fastokens"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", importing)
