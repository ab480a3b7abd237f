"""What a pool needs before a replica of it can serve."""

from collections.abc import Sequence

import pytest

from llmshed.gateway.replicas.pool_tools import CounterRecipe, counter_loader
from llmshed.tokenizing import fast
from llmshed.tokenizing.load import EMBEDDED
from llmshed.tokenizing.prompts import TextPrompt


class OneMore:
    """A fast tokenizer that finds one token in whatever it is given."""

    def encode_batch(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[str]:
        del add_special_tokens
        return ["x" for _ in texts]


def test_a_fast_backend_that_counts_otherwise_is_dropped_logged_and_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fast, "_load", lambda _: OneMore())
    told: list[None] = []
    load = counter_loader(b"", lambda: told.append(None))
    exact = load(CounterRecipe(EMBEDDED, "tgi", None, 0, fastokens=False))
    checked = load(CounterRecipe(EMBEDDED, "tgi", None, 0, fastokens=True))
    prompt = TextPrompt("Several words that are several tokens.")
    assert checked.count(prompt).tokens == exact.count(prompt).tokens > 1
    assert len(told) == 1
    assert [record.message for record in caplog.records] == ["fastokens_dropped"]
