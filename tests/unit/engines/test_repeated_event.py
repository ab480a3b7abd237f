"""Events that differ in one text alone are told from all others."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.engines.repeated_event import RepeatedEvent

EVENT = b'data: {"id":"a","choices":[{"delta":{"content":" one"},"finish_reason":null}]}\n\n'


def learnt(piece: bytes, key: bytes = b"content") -> RepeatedEvent | None:
    return RepeatedEvent.of(piece, key)


def repeats(text: bytes) -> bool:
    pattern = learnt(EVENT)
    assert pattern is not None
    return pattern.matches(EVENT.replace(b" one", text))


@pytest.mark.parametrize("text", [b"", b" two", b"}{][:,", b"'", b"\x7f", "é\u2028😀".encode(), b"x" * 1000])
def test_another_text_is_a_repeat(text: bytes) -> None:
    assert repeats(text)


@pytest.mark.parametrize(
    "text",
    [b'"', b"\\", b"\\n", b'\\"', b"\n", b"\r", b"\x00", b"\xc3", b"\xed\xa0\x80", b'","a":"', b"x" * 70_000],
)
def test_what_may_mean_something_else_is_none(text: bytes) -> None:
    assert not repeats(text)


@pytest.mark.parametrize(
    "piece",
    [
        b"",
        EVENT[:-1],
        EVENT[6:],
        EVENT + EVENT,
        EVENT.replace(b"null", b'"stop"'),
        EVENT.replace(b'"a"', b'"b"'),
        EVENT.replace(b"\n\n", b"\r\n\r\n"),
        EVENT[: EVENT.index(b" one")] + EVENT[EVENT.index(b"finish") :],
    ],
)
def test_another_event_is_none(piece: bytes) -> None:
    pattern = learnt(EVENT)
    assert pattern is not None
    assert not pattern.matches(piece)


@pytest.mark.parametrize(
    "piece",
    [
        EVENT.replace(b"content", b"text"),
        EVENT.replace(b" one", b"\\n"),
        EVENT.replace(b'"a"', b'"\\u0061"'),
        EVENT.replace(b'" one"', b"null"),
        EVENT.replace(b"\n\n", b"\r\n\n"),
        EVENT.replace(b"data: ", b"data: a\ndata: "),
        b": " + EVENT,
        EVENT + b"data: x",
        b"data: 7\n\n",
    ],
)
def test_nothing_is_learnt_of_what_proves_nothing(piece: bytes) -> None:
    assert learnt(piece) is None


leaves = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["content", "a", ':"', ",", "content:", ""])
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["content", "a", "b", 'c"']), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values, st.text(max_size=8), st.booleans())
def test_a_repeat_is_the_same_json_but_for_one_text(value: object, text: str, compact: bool) -> None:  # noqa: FBT001
    written = json.dumps(value, separators=(",", ":") if compact else (", ", ": ")).encode()
    pattern = learnt(b"data: " + written + b"\n\n")
    if pattern is None:
        return
    begin, end = pattern._begin.removeprefix(b"data: "), pattern._end.removesuffix(b"\n\n")
    other = begin + text.encode("utf-8", "surrogatepass") + end
    if pattern.matches(b"data: " + other + b"\n\n"):
        assert _changed(value, orjson.loads(other)) <= {"content"}


def _changed(one: object, other: object, key: str = "") -> set[str]:
    """Return the keys under which two values differ in a text, and `!` for any other difference."""
    match one, other:
        case dict(), dict() if list(one) == list(other):
            return {found for name in one for found in _changed(one[name], other[name], name)}
        case list(), list() if len(one) == len(other):
            return {found for pair in zip(one, other, strict=True) for found in _changed(*pair)}
        case str(), str():
            return set() if one == other else {key or "!"}
        case _:
            return set() if one == other else {"!"}
