"""What an engine is spared by a rung, token by token, by its own counters: as if the callers had asked for less."""

from pathlib import Path
from typing import Any

import pytest

from fakes.rung_effects import ANSWER_TOKENS, CEILING_TOKENS, THOUGHT_TOKENS, offering, work_of
from fakes.two_pools import CAP, DROP, SHRINK, SMALLER, THINK

REQUESTS = 6
WHOLE_TOKENS = THOUGHT_TOKENS + ANSWER_TOKENS


def asked_for_less(body: dict[str, Any], leaving_out: tuple[int, ...], suffix: str) -> dict[str, Any]:
    """Return a request as its caller would write it by hand, without these messages and with nothing to offer."""
    messages = [dict(one) for index, one in enumerate(body["messages"]) if index not in leaving_out]
    messages[-1]["content"] += suffix
    return {name: value for name, value in body.items() if name != "llmshed"} | {"messages": messages}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rung", "leaving_out", "suffix", "answer_tokens"),
    [
        pytest.param(DROP, (0,), "", WHOLE_TOKENS, id="drop_enrichment"),
        pytest.param({**SHRINK, "drop_share": 0.5}, (1,), "", WHOLE_TOKENS, id="shrink_context"),
        pytest.param(THINK, (), str(THINK["prompt_suffix"]), ANSWER_TOKENS, id="disable_thinking"),
        pytest.param(CAP, (), "", CAP["max_output_tokens"], id="cap_output"),
    ],
)
async def test_an_engine_does_what_it_would_if_callers_had_asked_for_less(
    rung: dict[str, Any], leaving_out: tuple[int, ...], suffix: str, answer_tokens: int, tmp_path: Path
) -> None:
    bodies = [offering(number) for number in range(REQUESTS)]
    by_hand = await work_of(tmp_path, (), [asked_for_less(body, leaving_out, suffix) for body in bodies])
    done = await work_of(tmp_path, (rung,), bodies)
    assert [line["degradations"] for line in done.lines] == [[rung["action"]]] * REQUESTS
    assert done.input_tokens == by_hand.input_tokens == sum(line["input_tokens"] for line in done.lines) > 0
    assert done.output_tokens == REQUESTS * answer_tokens == sum(line["output_tokens"] for line in done.lines)
    ceiling = CAP["max_output_tokens"] if rung is CAP else CEILING_TOKENS
    assert [line["reservation"]["output_tokens"] for line in done.lines] == [ceiling] * REQUESTS


@pytest.mark.slow
async def test_a_smaller_model_leaves_nothing_for_the_engine_of_the_large_one(tmp_path: Path) -> None:
    done = await work_of(tmp_path, (SMALLER,), [offering(number) for number in range(REQUESTS)])
    assert (done.input_tokens, done.output_tokens) == (0, 0)
    assert {(line["pool"], line["status"]) for line in done.lines} == {("small", 200)}
