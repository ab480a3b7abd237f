"""Which requests go on with a conversation that was served."""

from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.gateway.conversations import MOST_TURNS, REMEMBERED_SECONDS, Conversations, Turns, turns_of
from llmshed.gateway.hashing import Hasher

SYSTEM = {"role": "system", "content": "Be brief."}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def turns(*messages: dict[str, Any], tenant: str = "acme") -> Turns:
    return turns_of(Hasher(b"secret").turns(tenant), messages)


FIRST = (SYSTEM, user("Tell me of the sea."))
SECOND = (*FIRST, said("It is wet."), user("And of the sky?"))


def test_the_next_turn_of_a_finished_one_continues_whatever_was_answered() -> None:
    known = Conversations()
    assert not known.continues(None, turns(*SECOND), 0.0)
    known.finished(None, turns(*FIRST), 0.0)
    assert known.continues(None, turns(*SECOND), 1.0)
    assert known.continues(None, turns(*FIRST, said("Something else."), user("So?")), 1.0)
    assert known.continues(None, turns(*SECOND, said("Blue."), user("Why?")), 1.0), "an earlier turn will do"


@pytest.mark.parametrize(
    "messages",
    [
        FIRST,
        (*FIRST, user("Hurry up.")),
        (SYSTEM, user("Tell me of the sea")),
        (SYSTEM, user("Tell me of the sky."), said("It is wet."), user("And?")),
        (user("Tell me of the sea."), said("It is wet."), user("And?")),
        (said("It is wet."), user("And?")),
        (),
    ],
)
def test_what_does_not_begin_with_a_finished_turn_and_an_answer_is_new(messages: tuple[dict[str, Any], ...]) -> None:
    known = Conversations()
    known.finished(None, turns(*FIRST), 0.0)
    assert not known.continues(None, turns(*messages), 1.0)


def test_tenants_and_sessions_do_not_know_each_others_turns() -> None:
    known = Conversations()
    known.finished("s1", turns(*FIRST), 0.0)
    assert known.continues("s1", turns(*SECOND), 1.0)
    assert not known.continues("s2", turns(*SECOND), 1.0)
    assert not known.continues(None, turns(*SECOND), 1.0)
    assert not known.continues("s1", turns(*SECOND, tenant="other"), 1.0)


def test_a_turn_is_forgotten_after_half_an_hour_and_its_memory_is_freed_by_those_that_follow() -> None:
    known = Conversations()
    known.finished(None, turns(*FIRST), 0.0)
    assert known.continues(None, turns(*SECOND), REMEMBERED_SECONDS - 1)
    assert not known.continues(None, turns(*SECOND), REMEMBERED_SECONDS)
    known.finished(None, turns(user("x")), REMEMBERED_SECONDS)
    assert len(known) == 1


def test_the_oldest_turns_are_forgotten_first_and_finishing_one_again_makes_it_young() -> None:
    known = Conversations(most=2)
    for now, text in enumerate("abac"):
        known.finished(None, turns(user(text)), float(now))
    assert [known.continues(None, turns(user(text), said("?")), 5.0) for text in "abc"] == [True, False, True]


def test_the_order_of_keys_and_only_it_does_not_matter() -> None:
    assert turns({"role": "user", "content": "a"}) == turns({"content": "a", "role": "user"})
    assert turns(user("a"), user("b")).whole != turns(user("b"), user("a")).whole
    assert turns(user("a")).whole != turns(user("a"), tenant="acme ").whole


def test_of_a_very_long_conversation_the_newest_turns_are_looked_up() -> None:
    long = [message for n in range(200) for message in (user(str(n)), said("."))]
    got = turns(*long)
    assert len(got.earlier) == MOST_TURNS
    assert got.earlier[0] == turns(*long[:-1]).whole
    assert got.earlier[-1] == turns(*long[: -2 * MOST_TURNS + 1]).whole


message = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": st.sampled_from(["", "a", "b"])}
)


@given(st.lists(message, max_size=4), st.lists(message, max_size=4))
def test_a_request_continues_exactly_what_it_begins_with(
    before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    known = Conversations()
    known.finished(None, turns(*before), 0.0)
    begins = bool(before) and after[: len(before)] == before and len(after) > len(before)
    expected = begins and after[len(before)]["role"] == "assistant"
    assert known.continues(None, turns(*after), 1.0) == expected


def test_the_hashes_are_those_of_the_beginnings_alone() -> None:
    assert turns(*SECOND).earlier == (turns(*FIRST).whole,)
    assert len(turns(*FIRST).whole) == 24
    keyless = turns_of(blake2b(digest_size=12), FIRST)
    assert keyless.whole != turns(*FIRST).whole
