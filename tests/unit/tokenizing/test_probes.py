"""The probes must tell apart what is known to differ."""

from collections.abc import Callable

import pytest

from llmshed.errors import PromptError
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.counter import ExactCounter
from llmshed.tokenizing.files import EngineName
from llmshed.tokenizing.load import embedded
from llmshed.tokenizing.probes import PROBE_CHATS, PROBE_TEXTS, PROBES
from llmshed.tokenizing.prompts import ChatPrompt, Prompt, TextPrompt


def counted(counter: ExactCounter, prompt: Prompt) -> int | None:
    try:
        return counter.count(prompt).tokens
    except PromptError:
        return None


def differing(one: ExactCounter, other: ExactCounter) -> set[str]:
    return {name for name, prompt in PROBES.items() if counted(one, prompt) != counted(other, prompt)}


def test_probes_hold_texts_chats_tools_and_every_name_once() -> None:
    assert len(PROBES) == len(PROBE_TEXTS) + len(PROBE_CHATS)
    assert {type(probe) for probe in PROBES.values()} == {TextPrompt, ChatPrompt}
    assert any(chat.tools for chat in PROBE_CHATS.values())


def test_the_probes_tell_engines_apart_that_render_otherwise() -> None:
    found = differing(build_counter(embedded(), "tgi"), build_counter(embedded(), "vllm"))
    assert {"chat_prefill", "chat_tools", "chat_tool_result"} <= found
    assert not found & set(PROBE_TEXTS)


@pytest.mark.slow
def test_the_probes_tell_a_bos_that_one_side_adds(
    counter_of: Callable[[str, EngineName], ExactCounter],
) -> None:
    found = differing(counter_of("deepseek-v3", "tgi"), counter_of("deepseek-v3", "vllm"))
    assert set(PROBE_TEXTS) <= found
