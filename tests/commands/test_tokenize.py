"""`llmshed tokenize`: whole output and exit code, on the embedded tokenizer."""

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli

CHAT = [{"role": "user", "content": "Hello"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
QUIET = ("--tokenizer", "embedded")


@pytest.fixture
def chat(tmp_path: Path) -> Any:
    """Writes a chat to a file and names it."""

    def write(value: Any) -> Path:
        file = tmp_path / "chat.json"
        file.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return file

    return write


def test_a_text_is_counted_and_told_as_one_json_object(cli: Cli) -> None:
    ran = cli("tokenize", "Grüße<|im_end|>", *QUIET, "--json", "--ids", "--pieces")
    result = ran.json()
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert list(result) == [
        "schema", "input_tokens", "characters", "bytes", "special_tokens", "engine", "tokenizer", "tokenizer_sha256",
        "chat_template", "chat_template_sha256", "ids", "pieces",
    ]  # fmt: skip
    assert result["schema"] == "llmshed.tokenize/1"
    assert (result["characters"], result["bytes"]) == (15, 17)
    assert result["input_tokens"] == len(result["ids"]) == len(result["pieces"])
    assert result["pieces"][-1] == "<|im_end|>"
    assert (result["engine"], result["tokenizer"], result["chat_template"]) == ("tgi", "embedded", None)


def test_people_get_a_table_and_the_tokens_line_by_line(cli: Cli) -> None:
    ran = cli("tokenize", "<|im_end|>\n", *QUIET, "--pieces", "--ids")
    lines = ran.stdout.splitlines()
    assert lines[0].split() == ["input", "tokens", "2"]
    assert lines[-2:] == ["2  '<|im_end|>'", f"{lines[-1].split()[0]}  '\\n'"]


def test_the_default_tokenizer_is_told_to_belong_to_no_model(cli: Cli) -> None:
    ran = cli("tokenize", "Hello", "--json")
    assert ran.json()["tokenizer"] == "embedded"
    assert "no --tokenizer: the embedded one is used" in ran.stderr


def test_text_comes_from_an_argument_a_file_or_standard_input_and_keeps_its_line_ends(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a\r\nb\n")
    sizes = [
        cli("tokenize", *source, *QUIET, "--json", stdin=b"a\r\nb\n").json()["characters"]
        for source in (("a\r\nb\n",), ("--file", tmp_path / "text"), ("--file", "-"), ("-",))
    ]
    assert sizes == [5, 5, 5, 5]


def test_an_empty_text_is_a_text(cli: Cli) -> None:
    assert cli("tokenize", "", *QUIET, "--json").json()["input_tokens"] == 0


def test_a_message_list_and_a_whole_request_count_alike(cli: Cli, chat: Any) -> None:
    listed = cli("tokenize", "--chat", chat(CHAT), *QUIET, "--json").json()
    request = {"model": "m", "messages": CHAT, "max_tokens": 5, "stream": True}
    assert cli("tokenize", "--chat", chat(request), *QUIET, "--json").json() == listed
    assert cli("tokenize", "--chat", "-", *QUIET, "--json", stdin=json.dumps(CHAT)).json() == listed
    assert listed["characters"] == len("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n")
    assert (listed["chat_template"], listed["special_tokens"]) == ("tokenizer_config.json", False)


def test_tools_and_their_choice_change_the_count_for_tgi(cli: Cli, chat: Any) -> None:
    def count(**more: Any) -> int:
        ran = cli("tokenize", "--chat", chat({"messages": CHAT, **more}), *QUIET, "--json")
        return int(ran.json()["input_tokens"])

    assert count() == count(tools=[TOOL], tool_choice="none")
    assert count() < count(tools=[TOOL], tool_choice="required") < count(tools=[TOOL])


def test_arguments_of_the_template_reach_it_for_vllm_alone(cli: Cli, chat: Any, tmp_path: Path, data_dir: Path) -> None:
    template = "{{ 'word ' * 50 if enable_thinking else '' }}{{ messages[0].content }}"
    embedded = cli("tokenize", "x", *QUIET, "--json")
    assert embedded.exit_code == 0
    source = data_dir / "tokenizers" / "minilm-l6-v2" / "tokenizer.json"
    (tmp_path / "tokenizer.json").write_bytes(source.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    request = chat({"messages": CHAT, "chat_template_kwargs": {"enable_thinking": True}})
    counts = [
        cli("tokenize", "--chat", request, "--tokenizer", tmp_path, "--engine", engine, "--json").json()["characters"]
        for engine in ("vllm", "tgi")
    ]
    assert counts == [255, 5]


def test_images_need_a_bound_for_each(cli: Cli, chat: Any) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 3000}}
    file = chat([{"role": "user", "content": [image, {"type": "text", "text": "?"}]}])
    refused = cli("tokenize", "--chat", file, *QUIET)
    assert (refused.exit_code, "image" in refused.stderr) == (65, True)
    assert 700 < cli("tokenize", "--chat", file, *QUIET, "--image-tokens", "700", "--json").json()["input_tokens"] < 730


def test_special_tokens_can_be_left_out(cli: Cli, data_dir: Path) -> None:
    options = ("hello", "--tokenizer", data_dir / "tokenizers" / "minilm-l6-v2", "--engine", "vllm", "--json")
    assert cli("tokenize", *options).json()["input_tokens"] == 3
    assert cli("tokenize", *options, "--no-special-tokens").json()["input_tokens"] == 1


@pytest.mark.parametrize(
    "arguments", [(), ("a", "--file", "b"), ("--file", "a", "--chat", "b"), ("a", "--engine", "x")]
)
def test_wrong_usage_ends_with_64(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli("tokenize", *arguments).exit_code == 64


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[{"role": "user"', "line 1 column"),
        ("", "line 1 column"),
        ("{}", "messages"),
        ("[]", "messages"),
        ("5", "a number"),
        ('"chat"', "a string"),
        ('[{"role": "user", "content": "a", "content": "b"}]', "content"),
        ('{"messages": [], "messages": []}', "twice"),
        ('[{"content": "a"}]', "messages[0].role"),
        ('[{"role": "user", "content": 5}]', "messages[0]"),
        ('[{"role": "user", "content": "\\ud800"}]', "line 1 column"),
        ('{"messages": [{"role": "user", "content": "a"}], "tools": 1}', "tools"),
        ('{"messages": [{"role": "user", "content": "a"}], "chat_template": "x"}', "chat_template"),
        ("[" * 100 + "]" * 100, "nested"),
    ],
)
def test_a_chat_of_another_form_ends_with_65_and_the_place(cli: Cli, chat: Any, text: str, told: str) -> None:
    ran = cli("tokenize", "--chat", chat(text), *QUIET)
    assert (ran.exit_code, ran.stdout) == (65, "")
    assert told in ran.stderr
    assert ran.stderr.startswith("llmshed: ")


def test_a_template_that_refuses_ends_with_65_in_its_words(cli: Cli, chat: Any, data_dir: Path) -> None:
    file = chat([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])
    ran = cli("tokenize", "--chat", file, "--tokenizer", data_dir / "tokenizers" / "mistral-7b-instruct-v0.3")
    assert ran.exit_code == 65
    assert "conversation roles must alternate" in ran.stderr


def test_a_chat_without_a_template_ends_with_65(cli: Cli, chat: Any, data_dir: Path) -> None:
    ran = cli("tokenize", "--chat", chat(CHAT), "--tokenizer", data_dir / "tokenizers" / "minilm-l6-v2")
    assert (ran.exit_code, "no chat template" in ran.stderr) == (65, True)


def test_text_that_is_not_unicode_ends_with_65(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a\xff")
    assert cli("tokenize", "--file", tmp_path / "text", *QUIET).exit_code == 65
    # What an argument in another encoding becomes in Python.
    assert cli("tokenize", "a\udcff", *QUIET).exit_code == 65


@pytest.mark.parametrize("option", ["--file", "--chat"])
def test_a_missing_file_ends_with_66(cli: Cli, option: str, tmp_path: Path) -> None:
    ran = cli("tokenize", option, tmp_path / "nowhere", *QUIET)
    assert (ran.exit_code, ran.stdout) == (66, "")
    assert "nowhere: No such file" in ran.stderr


def test_a_tokenizer_that_is_not_there_ends_with_66(cli: Cli, tmp_path: Path) -> None:
    ran = cli("tokenize", "a", "--tokenizer", tmp_path / "nowhere")
    assert (ran.exit_code, "no tokenizer at" in ran.stderr) == (66, True)
    (tmp_path / "tokenizer.json").write_text("{")
    ran = cli("tokenize", "a", "--tokenizer", tmp_path)
    assert (ran.exit_code, "tokenizer.json cannot be used" in ran.stderr) == (66, True)


def test_a_template_that_the_engine_does_not_read_is_noted(cli: Cli, chat: Any, tmp_path: Path, data_dir: Path) -> None:
    source = data_dir / "tokenizers" / "minilm-l6-v2" / "tokenizer.json"
    (tmp_path / "tokenizer.json").write_bytes(source.read_bytes())
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0].content }}")
    ran = cli("tokenize", "--chat", chat(CHAT), "--tokenizer", tmp_path)
    assert (ran.exit_code, "which TGI does not read" in ran.stderr) == (0, True)
    assert "TGI" not in cli("tokenize", "--chat", chat(CHAT), "--tokenizer", tmp_path, "--engine", "vllm").stderr
