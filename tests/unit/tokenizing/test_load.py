from pathlib import Path

import pytest

from llmshed.errors import ExitCode, TokenizerError
from llmshed.tokenizing import load
from llmshed.tokenizing.files import MOST_BYTES


def test_a_directory_wins_over_the_embedded_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load.find("embedded").source == "embedded"
    (tmp_path / "embedded").mkdir()
    (tmp_path / "embedded" / "tokenizer.json").write_text("{}")
    found = load.find("embedded")
    assert (found.source, found.name, found.tokenizer_json) == ("directory", "embedded", "{}")


def test_a_directory_without_a_tokenizer_is_told(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match=r"has no tokenizer\.json$"):
        load.find(str(tmp_path))
    (tmp_path / "tokenizer.json.gz").write_bytes(b"")
    with pytest.raises(TokenizerError, match="gunzip it first"):
        load.find(str(tmp_path))


def test_a_file_is_told_apart_from_its_directory(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(TokenizerError, match="is a file"):
        load.find(str(tmp_path / "tokenizer.json"))


@pytest.mark.parametrize(
    "spec",
    ["", "/no/such/directory", "./no", "../x", "a/b/c", "a b", "org/..", "org/name@", "ümlaut", "x" * 5000, "a\0b"],
)
def test_what_is_neither_directory_nor_hub_id_is_refused_with_what_is_accepted(spec: str) -> None:
    with pytest.raises(TokenizerError, match="accepted: a directory with") as caught:
        load.find(spec)
    assert caught.value.exit_code == ExitCode.NO_INPUT


def test_a_file_beyond_its_bound_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with (tmp_path / "tokenizer_config.json").open("wb") as file:
        file.truncate(MOST_BYTES["tokenizer_config.json"] + 1)
    with pytest.raises(TokenizerError, match=r"tokenizer_config\.json is larger than"):
        load.find(str(tmp_path))


def test_the_embedded_tokenizer_has_a_template_for_both_engines() -> None:
    files = load.embedded()
    assert files.chat_template("tgi") == files.chat_template("vllm") is not None
    assert files.notes("tgi") == ()
