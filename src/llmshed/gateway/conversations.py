"""Which conversations this gateway has served, so that a request which goes on with one is known by what it holds.

Chat clients send the whole conversation with every turn, so the messages of a turn begin with those of the turn before,
and an assistant's answer follows them. No answer has to be kept: the messages of each finished turn are hashed, and a
request continues if the hash of a part of its messages that ends before an assistant's is one of these. What a client
says of itself counts for nothing.

Messages that a client rewrites between two turns (a moved cache mark, the oldest dropped) begin a new conversation.
"""

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import orjson

MOST_REMEMBERED: Final = 100_000
"""Finished turns that are remembered: about 25 MB."""
REMEMBERED_SECONDS: Final = 1800.0
"""How long a finished turn is remembered: half an hour, within which people answer."""
MOST_TURNS: Final = 64
"""Turns of one request that are looked up, the newest first: its last finished turn is among them."""


class Turns(NamedTuple):
    """The hashes of a conversation's beginnings.

    Args:
        whole: that of all messages.
        earlier: those of the parts that end before an assistant's message, newest first, at most `MOST_TURNS`.
    """

    whole: str
    earlier: tuple[str, ...]


def turns_of(hashed: blake2b, messages: Sequence[Mapping[str, Any]]) -> Turns:
    """Return the hashes of a conversation's beginnings, all from one pass over its bytes.

    Args:
        hashed: the running hash of its tenant, fed nothing yet.
        messages: parsed message objects; the order of their keys does not matter.
    """
    earlier: deque[str] = deque(maxlen=MOST_TURNS)
    for index, message in enumerate(messages):
        if index > 0 and message.get("role") == "assistant":
            earlier.appendleft(hashed.hexdigest())
        told = orjson.dumps(message, option=orjson.OPT_SORT_KEYS)
        hashed.update(b"%d:" % len(told))  # so that no two lists of messages are one text
        hashed.update(told)
    return Turns(hashed.hexdigest(), tuple(earlier))


class Conversations:
    """The turns that ended well, each by session and hash of its messages; the oldest are forgotten first."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        """Remember up to `most` turns."""
        self._most = most
        self._forget_at: OrderedDict[str, float] = OrderedDict()  # in the order of these times

    def __len__(self) -> int:
        """Return how many turns are remembered."""
        return len(self._forget_at)

    def finished(self, session: str | None, turns: Turns, now: float) -> None:
        """Note a turn whose answer is complete."""
        name = _name(session, turns.whole)
        self._forget_at[name] = now + REMEMBERED_SECONDS
        self._forget_at.move_to_end(name)
        while len(self._forget_at) > self._most or next(iter(self._forget_at.values())) <= now:
            self._forget_at.popitem(last=False)

    def continues(self, session: str | None, turns: Turns, now: float) -> bool:
        """Say whether a request goes on with a turn of this session, or with one without session if it has none."""
        return any(self._forget_at.get(_name(session, part), now) > now for part in turns.earlier)


def _name(session: str | None, messages: str) -> str:
    return messages if session is None else session + messages
