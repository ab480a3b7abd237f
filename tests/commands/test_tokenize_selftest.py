"""`llmshed tokenize --selftest`: what it tells, and how it ends."""

import json
from pathlib import Path

import orjson
import pytest

from conftest import Cli
from llmshed.tokenizing import selftest
from llmshed.tokenizing.load import embedded
from llmshed.tokenizing.paces import Pace


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is measured and no template tried; tests of the library do that."""
    measured = [Pace("prose", 131_000, 1, 0.1, 0.1, 0), Pace("letter", 131_072, 1, 0.2, 0.1, 0)]
    monkeypatch.setattr(selftest, "paces", lambda *_: measured)
    monkeypatch.setattr(selftest, "try_template", lambda *_: None)


@pytest.fixture
def expanding(tmp_path: Path) -> Path:
    """The embedded tokenizer with a normaliser that makes eighteen characters of one."""
    described = orjson.loads(embedded().tokenizer_json) | {"normalizer": {"type": "NFKC"}}
    (tmp_path / "tokenizer.json").write_bytes(orjson.dumps(described))
    return tmp_path


@pytest.mark.slow
def test_the_embedded_tokenizer_passes(cli: Cli) -> None:
    ran = cli("tokenize", "--selftest", "embedded", "--json")
    found = ran.json()
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert (found["schema"], found["passed"], found["findings"]) == ("llmshed.tokenizer_selftest/1", True, [])
    assert list(found) == [
        "schema", "passed", "tokenizer", "tokenizer_sha256", "engine", "bytes_per_token", "tokens_per_byte",
        "counted_in_slices", "chat_template_tried", "ratios_to_prose", "findings",
    ]  # fmt: skip
    assert len(found["ratios_to_prose"]) == 22


@pytest.mark.usefixtures("quick")
def test_a_warning_is_told_with_its_kind_and_ends_with_65(cli: Cli, expanding: Path) -> None:
    ran = cli("tokenize", "--selftest", expanding)
    *rows, last = ran.stdout.splitlines()
    assert ran.exit_code == 65
    assert last.startswith("warning: expansion: the normaliser makes 11 bytes of each byte of U+FDFA")
    told = dict(row.split("  ", 1) for row in rows)
    assert told["slowest string"].strip() == "'letter', 2.0 x prose"
    assert told["long texts"].strip() == "counted in slices"
    assert told["tokens of a byte"].strip() == "not proved"
    found = cli("tokenize", "--selftest", expanding, "--json").json()
    assert (found["passed"], [one["kind"] for one in found["findings"]]) == (False, ["expansion"])


@pytest.mark.slow
def test_a_template_that_is_too_dear_is_a_warning(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "paces", lambda *_: [Pace("prose", 131_000, 1, 0.1, 0.1, 0)])
    (tmp_path / "tokenizer.json").write_text(embedded().tokenizer_json)
    template = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    ran = cli("tokenize", "--selftest", tmp_path)
    assert ran.exit_code == 65
    assert "warning: template:" in ran.stdout
    assert "too many steps to render for the probe chat_user" in ran.stdout


@pytest.mark.parametrize("arguments", [("a", "--selftest", "embedded"), ("--selftest", "embedded", "--chat", "x")])
def test_it_stands_alone(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli("tokenize", *arguments).exit_code == 64


def test_a_tokenizer_that_is_not_there_ends_with_66(cli: Cli, tmp_path: Path) -> None:
    assert cli("tokenize", "--selftest", tmp_path / "nowhere").exit_code == 66
