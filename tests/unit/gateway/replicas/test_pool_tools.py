"""What a pool needs before a replica of it can serve."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from llmshed.errors import TokenizerError
from llmshed.gateway.replicas.pool_tools import CounterRecipe, counter_loader
from llmshed.tokenizing import fast
from llmshed.tokenizing.load import EMBEDDED, embedded
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


@pytest.mark.slow
def test_a_template_that_is_too_dear_to_render_keeps_its_tokenizer_from_being_used(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(embedded().tokenizer_json)
    nested = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": nested}))
    load = counter_loader(b"", lambda: None)
    recipe = CounterRecipe(str(tmp_path), "tgi", None, 0, fastokens=False)
    with pytest.raises(TokenizerError, match="too many steps to render for the probe chat_user"):
        load(recipe)
    config.write_text(json.dumps({"chat_template": "{{ messages[0].content }}"}))
    assert load(recipe).count(TextPrompt("a")).tokens == 1
