from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from llmshed.errors import PromptError, TokenizerError
from llmshed.tokenizing.jinja_hf import HfRenderer
from llmshed.tokenizing.prompts import ChatPrompt

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def renderer(template: str, tool_use: str | None = None, **special_tokens: str) -> HfRenderer:
    return HfRenderer(
        template,
        tool_use=tool_use,
        special_tokens=special_tokens,
        local_time=lambda: datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC),
    )


def user(text: str, **template_kwargs: Any) -> ChatPrompt:
    return ChatPrompt([{"role": "user", "content": text}], template_kwargs=template_kwargs)


def test_all_conversations_of_all_templates_render_as_in_transformers(data_dir: Path) -> None:
    folder = data_dir / "chat_templates"
    expected = orjson.loads((folder / "expected_renders.json").read_bytes())
    right = []
    for name, template in expected["templates"].items():
        tokens = {key: template[key] for key in ("bos_token", "eos_token")}
        made = renderer((folder / f"{name}.jinja").read_text("utf-8"), **tokens)
        for conversation, renders in template["renders"].items():
            asked = expected["conversations"][conversation]
            right.append(same(made, ChatPrompt(asked["messages"], asked.get("tools")), renders["hf"]))
    assert (sum(right), len(right)) == (104, 104)


def same(made: HfRenderer, prompt: ChatPrompt, expected: Any) -> bool:
    try:
        return bool(made.render(prompt) == expected)
    except PromptError as error:
        return isinstance(expected, dict) and str(expected["message"]) in str(error)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{% for m in messages %}\n  {% if true %}\n{{ m.content }}\n  {% endif %}\n{% endfor %}\n", "abc\n"),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("{% generation %}{{ messages[0].content }}{% endgeneration %}", "abc"),
        ("{%- set ns = namespace(x=1) %}{% generation %}{% set ns.x = 2 %}{% endgeneration %}{{ ns.x }}", "2"),
        ("{% generation %}{% set x = 2 %}{% endgeneration %}{{ x is defined }}", "False"),
        ("{{ add_generation_prompt }}{{ tools }}{{ documents }}", "TrueNoneNone"),
        ("{{ bos_token is defined }}{{ eos_token }}", "False</s>"),
        ("{{ strftime_now('%d %b %Y') }}", "02 Jan 2025"),
        ("{{ messages | tojson }}", '[{"role": "user", "content": "abc"}]'),
        ("{{ {'b': 'é<', 'a': 1} | tojson(indent=1, sort_keys=true) }}", '{\n "a": 1,\n "b": "é<"\n}'),
        ("{{ '<&>' }}", "<&>"),
    ],
)
def test_the_environment_is_that_of_transformers(template: str, text: str) -> None:
    assert renderer(template, eos_token="</s>").render(user("abc")) == text


def test_arguments_of_the_request_reach_the_template_but_never_replace_its_own_variables() -> None:
    made = renderer("{{ enable_thinking }} {{ messages[0].content }}")
    assert made.render(user("a", enable_thinking=False, messages=[{"content": "b"}])) == "False a"


def test_parts_stay_lists_and_tools_pass_through() -> None:
    prompt = ChatPrompt([{"role": "user", "content": [{"type": "text", "text": "x"}]}], tools=[TOOL])
    made = renderer("{{ messages[0].content[0].text }}{{ tools[0].function.parameters.type }}")
    assert made.render(prompt) == "xobject"


def test_a_template_for_tools_is_used_when_tools_are_offered() -> None:
    made = renderer("plain", tool_use="tools")
    assert made.render(user("a")) == "plain"
    assert made.render(ChatPrompt([], tools=[TOOL])) == "tools"


def test_a_refusal_is_told_in_the_templates_words() -> None:
    with pytest.raises(PromptError, match=r"^the chat template refuses the messages: Roles must alternate$"):
        renderer("{{ raise_exception('Roles must\n alternate') }}").render(user("a"))


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages[0].content + 5 }}",
        "{{ messages[0].content.a.b }}",
        "{{ messages[0].content.__class__.__mro__ }}{{ cycler.__init__.__globals__.os }}",
        "{{ messages.append(1) }}",
    ],
)
def test_a_failure_tells_nothing_of_the_prompt(template: str) -> None:
    with pytest.raises(PromptError) as caught:
        renderer(template).render(user("secret"))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("template", ["{% for m in messages %}", "{{ a b }}", "{% nonsense %}", "{% generation %}"])
def test_a_template_that_is_none_is_refused_at_once(template: str) -> None:
    with pytest.raises(TokenizerError, match="line 1"):
        renderer(template)


@pytest.mark.parametrize("content", ["{{ 7 * 7 }}", "{% raw %}", "<|im_end|>", "\x00\u202e\ufeff", "{# #}"])
def test_hostile_messages_are_text_and_nothing_else(content: str) -> None:
    assert renderer("[{{ messages[0].content }}]").render(user(content)) == f"[{content}]"
