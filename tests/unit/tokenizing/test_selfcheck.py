from collections.abc import Callable

import pytest

from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.counter import ExactCounter
from llmshed.tokenizing.files import EngineName
from llmshed.tokenizing.load import embedded
from llmshed.tokenizing.prompts import ChatPrompt, TextPrompt
from llmshed.tokenizing.selfcheck import PROBE_CHATS, PROBE_TEXTS, PROBES, Mismatch, compare, local_counts


def test_equal_counts_and_equal_refusals_are_no_mismatch() -> None:
    assert compare({"a": 1, "b": None}, {"a": 1, "b": None}) == []


def test_other_counts_and_one_sided_refusals_are_told() -> None:
    found = compare({"a": 1, "b": None, "c": 3}, {"a": 2, "b": 5, "c": None})
    assert found == [Mismatch("a", 1, 2), Mismatch("b", None, 5), Mismatch("c", 3, None)]
    assert [str(mismatch) for mismatch in found] == [
        "a: 1 tokens here, 2 tokens by the engine",
        "b: refused here, 5 tokens by the engine",
        "c: 3 tokens here, refused by the engine",
    ]


def test_probes_that_the_engine_was_not_asked_are_left_out() -> None:
    assert compare({"a": 1, "b": 2}, {"a": 1}) == []


def test_probes_hold_texts_chats_tools_and_every_name_once() -> None:
    assert len(PROBES) == len(PROBE_TEXTS) + len(PROBE_CHATS)
    assert {type(probe) for probe in PROBES.values()} == {TextPrompt, ChatPrompt}
    assert any(chat.tools for chat in PROBE_CHATS.values())


def test_the_probes_tell_engines_apart_that_render_otherwise() -> None:
    tgi = local_counts(build_counter(embedded(), "tgi"))
    vllm = local_counts(build_counter(embedded(), "vllm"))
    differing = {mismatch.probe for mismatch in compare(tgi, vllm)}
    assert {"chat_prefill", "chat_tools", "chat_tool_result"} <= differing
    assert not differing & set(PROBE_TEXTS)


def test_a_refused_probe_counts_as_refused() -> None:
    local = local_counts(build_counter(embedded(), "vllm"), {"chat_tool_result": PROBE_CHATS["chat_tool_result"]})
    assert local == {"chat_tool_result": None}


@pytest.mark.slow
def test_the_probes_tell_a_bos_that_one_side_adds(
    counter_of: Callable[[str, EngineName], ExactCounter],
) -> None:
    tgi = local_counts(counter_of("deepseek-v3", "tgi"))
    vllm = local_counts(counter_of("deepseek-v3", "vllm"))
    assert set(PROBE_TEXTS) <= {mismatch.probe for mismatch in compare(tgi, vllm)}
