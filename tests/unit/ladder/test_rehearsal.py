"""The dry run of a hold, against counts by hand."""

from typing import Any

import pytest

from fakes.ladders import shipped, small
from llmshed.ladder.model import RungAction
from llmshed.ladder.rehearsal import RungEffect, rehearse

FULL = shipped("full")


def line(lane: str, priority_class: str, tokens: int, ceiling: int, **other: Any) -> dict[str, Any]:
    """Return what matters of a decision's line."""
    return {
        "pool": "chat", "decision": "admit", "lane": lane, "priority_class": priority_class, "tenant": "acme",
        "route": "/v1/chat/completions", "reservation": {"total_tokens": tokens}, "output_ceiling_tokens": ceiling,
        "sequences": 1, **other,
    }  # fmt: skip


RECORDS = [
    line("interactive", "high", 1500, 1000),
    line("interactive", "normal", 3000, 800, sequences=2, route="/v1/completions"),
    line("interactive", "low", 900, 512),
    line("interactive", "low", 700, 600, tenant="bolt"),
    line("bulk", "normal", 9000, 2000),
    line("interactive", "low", 400, 300, pool="other"),
    line("interactive", "low", 400, 300, decision="refuse"),
    {"pool": None, "decision": None, "lane": None, "tenant": None, "reservation": None},
]


def told(rung: str) -> dict[str, tuple[int | None, int | None]]:
    return {effect.rung: (effect.requests, effect.tokens) for effect in rehearse(RECORDS, "chat", FULL, rung).effects}


def test_what_was_served_is_what_it_is_held_against() -> None:
    found = rehearse(RECORDS, "chat", FULL, "stop-bulk")
    assert (found.served, found.served_tokens) == (5, 15_100)
    assert told("stop-bulk") == {"stop-bulk": (1, 9000)}


def test_what_is_stopped_is_not_capped_as_well() -> None:
    # Above 512: 1000 of the high one, twice 800, 600 of bolt; the bulk request of 2000 is stopped.
    assert told("cap-output") == {
        "stop-bulk": (1, 9000),
        "drop-enrichment": (None, None),
        "shrink-context": (None, None),
        "disable-thinking": (3, None),  # chats that are not stopped
        "cap-output": (3, 488 + 2 * 288 + 88),
    }


def test_what_is_moved_takes_along_what_the_cap_left_of_it() -> None:
    assert told("smaller-model")["smaller-model"] == (2, 900 + 700 - 88)


def test_what_is_shed_is_not_moved_first() -> None:
    found = told("shed-normal")
    assert found["shed-low"] == (2, 1600)
    assert found["shed-normal"] == (1, 3000)
    assert found["smaller-model"] == (0, 0)
    assert found["cap-output"] == (1, 488)


def test_what_the_log_does_not_tell_is_said() -> None:
    effects = {effect.rung: effect for effect in rehearse(RECORDS, "chat", FULL, "shed-low").effects}
    assert {rung for rung, effect in effects.items() if effect.unknown} == set(effects) - {"shed-low"}
    assert "tokenizer" in effects["smaller-model"].unknown


def test_scopes_are_respected() -> None:
    ladder = small('action = "cap_output"; max_output_tokens = 100; scope = { tenants = ["bolt"] }')
    (effect,) = rehearse(RECORDS, "chat", ladder, "r1").effects
    assert (effect.requests, effect.tokens) == (1, 500)


def test_two_caps_save_the_difference_each() -> None:
    ladder = small('action = "cap_output"; max_output_tokens = 700\naction = "cap_output"; max_output_tokens = 300')
    first, second = rehearse(RECORDS, "chat", ladder, "r2").effects
    assert (first.requests, first.tokens) == (3, 300 + 2 * 100 + 1300)
    assert (second.requests, second.tokens) == (5, 400 + 2 * 400 + 212 + 300 + 400)


def test_thinking_by_another_pool_moves_chats() -> None:
    ladder = small('action = "disable_thinking"; pool = "plain"')
    (effect,) = rehearse(RECORDS, "chat", ladder, "r1").effects
    assert (effect.requests, effect.tokens) == (4, 1500 + 900 + 700 + 9000)


def test_jobs_are_none() -> None:
    ladder = small('action = "preempt_bulk"; requeue_tokens_per_minute = 1')
    assert rehearse(RECORDS, "chat", ladder, "r1").effects == (
        RungEffect("r1", RungAction.PREEMPT_BULK, 0, 0, "there are no asynchronous jobs, so it applies to nothing"),
    )


def test_no_such_rung() -> None:
    with pytest.raises(ValueError, match="full@1 has no rung `shed`"):
        rehearse(RECORDS, "chat", FULL, "shed")
