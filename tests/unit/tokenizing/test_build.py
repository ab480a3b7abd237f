import hashlib
from dataclasses import replace
from typing import Any

import pytest

from llmshed.errors import TokenizerError
from llmshed.tokenizing.blocks import BLOCK_BYTES
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.encode import ReferenceCounter
from llmshed.tokenizing.files import ChatTemplate, EngineName, TokenizerFiles
from llmshed.tokenizing.load import embedded
from llmshed.tokenizing.prompts import ChatPrompt, TextPrompt
from llmshed.tokenizing.renderers import local_time
from llmshed.tokenizing.segments import SegmentCounter


def files_with(template: str, **changes: Any) -> TokenizerFiles:
    return replace(
        embedded(), templates={"tokenizer_config.json": ChatTemplate(template, "tokenizer_config.json")}, **changes
    )


@pytest.mark.parametrize("engine", ["tgi", "vllm"])
def test_a_broken_template_is_named_with_its_file(engine: EngineName) -> None:
    with pytest.raises(TokenizerError, match=r"^embedded: tokenizer_config\.json: the chat template .*line 1"):
        build_counter(files_with("{% if %}"), engine)


def test_blocks_are_named_with_a_key_and_only_then() -> None:
    prompt = TextPrompt("a" * (2 * BLOCK_BYTES))
    assert build_counter(embedded(), "tgi").count(prompt).blocks == ()
    assert len(build_counter(embedded(), "tgi", block_key=b"k" * 32).count(prompt).blocks) == 2


def test_blocks_follow_the_rendered_chat_so_that_turns_share_a_beginning() -> None:
    counter = build_counter(embedded(), "tgi", block_key=b"k" * 32)
    turn = [{"role": "user", "content": "word " * 500}]
    first = counter.count(ChatPrompt(turn)).blocks
    second = counter.count(ChatPrompt([*turn, {"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}]))
    assert first
    assert second.blocks[: len(first)] == first


def test_a_counter_tells_by_which_tokenizer_and_template_it_counts() -> None:
    digests = build_counter(files_with("{{ messages[0].content }}"), "tgi").digests
    assert digests.tokenizer_sha256 == hashlib.sha256(embedded().tokenizer_json.encode()).hexdigest()
    assert digests.template_sha256 == hashlib.sha256(b"{{ messages[0].content }}").hexdigest()
    assert build_counter(replace(embedded(), templates={}), "tgi").digests.template_sha256 is None


def test_the_cache_is_used_where_it_is_asked_for_and_proved() -> None:
    assert isinstance(build_counter(embedded(), "tgi", cache_bytes=10**6)._texts, SegmentCounter)
    assert isinstance(build_counter(embedded(), "tgi")._texts, ReferenceCounter)
    padded = embedded().tokenizer_json.replace(
        '"truncation":null', '"truncation":{"direction":"Right","max_length":9,"strategy":"LongestFirst","stride":0}'
    )
    assert isinstance(
        build_counter(replace(embedded(), tokenizer_json=padded), "tgi", cache_bytes=10**6)._texts, ReferenceCounter
    )


def test_tgi_gets_the_special_tokens_of_the_config_alone() -> None:
    files = files_with("{{ bos_token }}|{{ eos_token }}", special_tokens={"bos_token": "<s>", "eos_token": "</s>"})
    prompt = ChatPrompt([{"role": "user", "content": "a"}])
    assert build_counter(files, "vllm").render(prompt).text == "<s>|</s>"
    assert build_counter(files, "tgi").render(prompt).text == "none|</s>"


def test_templates_are_told_the_local_time() -> None:
    now = local_time()
    assert now.tzinfo is not None
    assert now.utcoffset() == now.astimezone().utcoffset()
