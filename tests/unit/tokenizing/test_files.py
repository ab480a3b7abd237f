import hashlib
from typing import Any

import orjson
import pytest

from llmshed.errors import TokenizerError
from llmshed.tokenizing.files import EngineName, TokenizerFiles, read_files

TOKENIZER = b'{"model": {}}'


def read(config: Any = None, special: Any = None, **files: bytes) -> TokenizerFiles:
    """Read files named as `chat_template_jinja`; configs are given as values."""
    contents = {"tokenizer.json": TOKENIZER}
    contents |= {name.replace("_jinja", ".jinja").replace("_json", ".json"): content for name, content in files.items()}
    for name, value in (("tokenizer_config.json", config), ("special_tokens_map.json", special)):
        if value is not None:
            contents[name] = orjson.dumps(value)
    return read_files("m", "directory", contents)


ALL: dict[str, Any] = {
    "config": {"chat_template": "config"},
    "chat_template_json": b'{"chat_template": "json"}',
    "chat_template_jinja": b"jinja",
    "processor_config_json": b'{"chat_template": "processor"}',
}


@pytest.mark.parametrize(
    ("engine", "order"),
    [("tgi", ["json", "config", "processor", "jinja"]), ("vllm", ["jinja", "json", "config", "processor"])],
)
def test_each_engine_takes_its_template_in_its_own_order(engine: EngineName, order: list[str]) -> None:
    files = dict(ALL)
    names = {"json": "chat_template_json", "config": "config", "processor": "processor_config_json"}
    for text in order:
        template = read(**files).chat_template(engine)
        assert template is not None
        assert template.text == text
        del files[names.get(text, "chat_template_jinja")]
    assert read(**files).chat_template(engine) is None


def test_a_jinja_file_alone_is_used_for_tgi_with_a_note_that_tgi_would_not() -> None:
    files = read(chat_template_jinja=b"jinja")
    assert files.chat_template("tgi") is not None
    assert "does not read" in files.notes("tgi")[0]
    assert files.notes("vllm") == ()
    assert read(**ALL).notes("tgi") == ()


def test_of_named_templates_the_default_one_is_taken_and_the_one_for_tools_kept() -> None:
    named = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain"}]
    template = read({"chat_template": named}).chat_template("tgi")
    assert template is not None
    assert (template.text, template.tool_use, template.source) == ("plain", "tools", "tokenizer_config.json")
    assert read({"chat_template": named[:1]}).chat_template("tgi") is None


def test_line_ends_of_a_jinja_file_are_read_as_text() -> None:
    template = read(chat_template_jinja=b"a\r\nb\rc\n").chat_template("vllm")
    assert template is not None
    assert template.text == "a\nb\nc\n"
    assert template.sha256 == hashlib.sha256(b"a\nb\nc\n").hexdigest()


def test_special_tokens_are_texts_or_objects_and_the_map_fills_in() -> None:
    files = read(
        {"bos_token": {"content": "<s>", "lstrip": False}, "eos_token": "</s>", "pad_token": None},
        {"eos_token": "<other>", "unk_token": {"content": "<unk>"}},
    )
    assert files.special_tokens == {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    assert files.template_tokens("vllm") == files.special_tokens
    assert files.template_tokens("tgi") == {"bos_token": "<s>", "eos_token": "</s>"}


def test_the_hash_is_that_of_the_file() -> None:
    assert read().tokenizer_sha256 == hashlib.sha256(TOKENIZER).hexdigest()


@pytest.mark.parametrize(
    ("named", "files"),
    [
        ("tokenizer_config.json", {"tokenizer_config_json": b"{"}),
        ("tokenizer_config.json", {"tokenizer_config_json": b"[]"}),
        ("special_tokens_map.json", {"special_tokens_map_json": b"null"}),
        ("chat_template.json", {"chat_template_json": b"template"}),
        ("chat_template.json", {"chat_template_json": b"{}"}),
        ("chat_template.jinja", {"chat_template_jinja": b"\xff"}),
        ("bos_token", {"config": {"bos_token": 5}}),
        ("eos_token", {"config": {"eos_token": {"text": "</s>"}}}),
        ("chat_template", {"config": {"chat_template": 5}}),
        ("chat_template", {"config": {"chat_template": ["plain"]}}),
        ("chat_template", {"config": {"chat_template": [{"name": "default"}]}}),
    ],
)
def test_a_damaged_file_is_named(named: str, files: dict[str, Any]) -> None:
    with pytest.raises(TokenizerError, match=named.replace(".", r"\.")):
        read(**files)


def test_a_tokenizer_that_is_no_text_is_named() -> None:
    with pytest.raises(TokenizerError, match=r"m: tokenizer\.json is not UTF-8 text \(byte 1\)"):
        read_files("m", "directory", {"tokenizer.json": b"{\xff"})
