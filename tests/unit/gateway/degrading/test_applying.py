"""Rungs on a body: what goes, in which order, down to which floor; and what never does."""

import copy
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.gateway.degrading.applying import Degraded, apply_rungs
from llmshed.gateway.degrading.declared import Declared, Place, read_declared
from llmshed.ladder.model import Rung, RungAction

CHAT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "an old question"},
        {"role": "assistant", "content": "an old answer"},
        {"role": "user", "content": [{"type": "text", "text": "a page"}, {"type": "text", "text": "Why?"}]},
    ],
    "tools": [{"type": "function", "function": {"name": name}} for name in ("search", "clock")],
    "tool_choice": "auto",
    "llmshed": {
        "enrichment": {"tools": ["search"], "parts": [{"message": 0}]},
        "context": {"parts": [{"message": 1}, {"message": 2}, {"message": 3, "part": 0}], "keep": 1},
    },
}


def rung(action: RungAction, **fields: Any) -> Rung:
    return Rung(name=action.replace("_", "-"), action=action, owner="a", agreed_on=date(2026, 1, 1), **fields)


DROP = rung(RungAction.DROP_ENRICHMENT)
SUFFIX = rung(RungAction.DISABLE_THINKING, prompt_suffix=" /no_think")


def applied(body: dict[str, Any], *rungs: Rung, arguments: bool = False) -> Degraded:
    before = copy.deepcopy(body)
    degraded = apply_rungs(body, read_declared(body), rungs, takes_template_arguments=arguments)
    assert body == before, "what was sent stays as it was"
    return degraded


def contents(degraded: Degraded) -> list[Any]:
    return [message["content"] for message in degraded.body["messages"]]


def test_enrichment_goes_whole() -> None:
    degraded = applied(CHAT, DROP)
    assert degraded.actions == ("drop_enrichment",)
    assert contents(degraded)[0] == "an old question"
    assert [tool["function"]["name"] for tool in degraded.body["tools"]] == ["clock"]
    assert degraded.body["tool_choice"] == "auto"


def test_without_any_tool_left_nothing_speaks_of_tools() -> None:
    offered = {"enrichment": {"tools": ["search", "clock"]}}
    degraded = applied({**CHAT, "llmshed": offered}, DROP)
    assert not {"tools", "tool_choice"} & set(degraded.body)


@pytest.mark.parametrize(
    ("share", "left"),
    [(0.01, ["an old answer", "a page"]), (0.34, ["a page"]), (0.5, ["a page"]), (1.0, ["a page"])],
)
def test_context_goes_first_listed_first_down_to_its_floor(share: float, left: list[str]) -> None:
    """One of three, then two; the third is the floor."""
    shown = str(contents(applied(CHAT, rung(RungAction.SHRINK_CONTEXT, drop_share=share))))
    assert [text for text in ("an old question", "an old answer", "a page") if text in shown] == left


def test_a_suffix_stands_behind_what_is_asked_once() -> None:
    degraded = applied(CHAT, SUFFIX, SUFFIX)
    assert contents(degraded)[-1][-1] == {"type": "text", "text": " /no_think"}
    plain = {"messages": [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Well"}]}
    once = applied(plain, SUFFIX)
    assert contents(once) == ["Why? /no_think", "Well"]
    assert applied(dict(once.body), SUFFIX).actions == ()


def test_an_engine_that_takes_arguments_gets_one() -> None:
    by_argument = rung(RungAction.DISABLE_THINKING, template_argument="enable_thinking", prompt_suffix="/no_think")
    degraded = applied({**CHAT, "chat_template_kwargs": {"x": 1}}, by_argument, arguments=True)
    assert degraded.body["chat_template_kwargs"] == {"x": 1, "enable_thinking": False}
    assert applied(dict(degraded.body), by_argument, arguments=True).actions == ()
    assert "/no_think" in str(contents(applied(CHAT, by_argument)))


def test_another_pool_answers() -> None:
    for one in (rung(RungAction.SMALLER_MODEL, pool="small"), rung(RungAction.DISABLE_THINKING, pool="small")):
        degraded = applied(CHAT, one)
        assert (degraded.pool, degraded.actions) == ("small", (str(one.action),))
        onward = applied(CHAT, one, rung(RungAction.SMALLER_MODEL, pool="tiny"))
        assert onward.pool == "tiny"


def test_rungs_come_together_on_the_places_of_the_body_that_was_sent() -> None:
    degraded = applied(CHAT, DROP, rung(RungAction.SHRINK_CONTEXT, drop_share=1.0), SUFFIX)
    assert degraded.actions == ("drop_enrichment", "shrink_context", "disable_thinking")
    assert contents(degraded) == [[{"type": "text", "text": text} for text in ("a page", "Why?", " /no_think")]]


def test_who_is_answered_and_how_long_is_the_cores_affair() -> None:
    core = (rung(RungAction.STOP_BULK), rung(RungAction.SHED_INTERACTIVE), rung(RungAction.PREEMPT_BULK))
    degraded = applied(CHAT, *core, rung(RungAction.CAP_OUTPUT, max_output_tokens=64))
    assert (degraded.actions, dict(degraded.body), degraded.output_tokens) == ((), CHAT, 64)


@pytest.mark.parametrize("one", [DROP, rung(RungAction.SHRINK_CONTEXT, drop_share=1.0)])
def test_nothing_offered_changes_nothing(one: Rung) -> None:
    bare = {name: value for name, value in CHAT.items() if name != "llmshed"}
    degraded = applied(bare, one)
    assert (degraded.actions, dict(degraded.body)) == ((), bare)
    assert applied({"inputs": "text"}, one, SUFFIX).actions == ()


@given(
    roles=st.lists(st.sampled_from(["system", "user", "assistant"]), min_size=1, max_size=12),
    chosen=st.lists(st.integers(0, 11), unique=True, max_size=12),
    keep=st.integers(0, 12),
    share=st.floats(0.01, 1.0),
)
def test_order_and_floor_hold_and_what_is_asked_stays(
    roles: list[str], chosen: list[int], keep: int, share: float
) -> None:
    messages = [{"role": role, "content": str(number)} for number, role in enumerate(roles)]
    asks = max((number for number, role in enumerate(roles) if role == "user"), default=None)
    listed = [number for number in chosen if number < len(roles) and number != asks]
    if len(listed) == len(roles):
        listed.pop()
    keep = min(keep, len(listed))
    declared = Declared(context=tuple(Place(number) for number in listed), keep=keep)
    one = rung(RungAction.SHRINK_CONTEXT, drop_share=share)
    degraded = apply_rungs({"messages": messages}, declared, (one,), takes_template_arguments=False)
    left = [int(text) for text in contents(degraded)]
    gone = [number for number in range(len(roles)) if number not in left]
    assert left == sorted(left), "what stays keeps its order"
    assert set(gone) == set(listed[: len(gone)]), "first listed first"
    assert len(listed) - len(gone) >= keep
    assert len(gone) <= -(-len(listed) * share // 1) + 1e-9
    assert asks is None or asks in left
    assert degraded.actions == (("shrink_context",) if gone else ())
    twice = apply_rungs({"messages": messages}, declared, (one, one), takes_template_arguments=False)
    assert twice == degraded
