"""One reading of a body, or none."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError
from llmshed.gateway.door.body import MAX_DEPTH, MAX_NODES, parse_body


def refusal(raw: bytes) -> BodyError:
    with pytest.raises(BodyError) as caught:
        parse_body(raw)
    return caught.value


def wrapped(raw: bytes) -> bytes:
    """A text of the corpus as a member of an object, since a body is one."""
    return b'{"value":' + raw + b"}"


def corpus(data_dir: Path, folder: str, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    files = sorted((data_dir / "corpora" / "json-parsing" / folder).glob(f"{prefix}*.json"))
    assert files, f"{folder} holds no {prefix}*"
    return ((file.name, file.read_bytes()) for file in files)


def test_every_text_that_is_no_json_is_refused(data_dir: Path) -> None:
    texts = list(corpus(data_dir, "test_parsing", "n_"))
    assert len(texts) == 188
    assert {name: refusal(raw).reason for name, raw in texts} == {name: Reason.MALFORMED for name, _ in texts}


def test_every_json_text_is_read_but_for_the_two_with_a_duplicate_key(data_dir: Path) -> None:
    read, refused = set(), {}
    for name, raw in corpus(data_dir, "test_parsing", "y_"):
        try:
            value = parse_body(wrapped(raw))["value"]
        except BodyError as error:
            refused[name] = error.reason
        else:
            assert value == json.loads(raw), name
            read.add(name)
    assert len(read) == 93
    assert refused == {
        "y_object_duplicated_key.json": Reason.DUPLICATE_KEY,
        "y_object_duplicated_key_and_value.json": Reason.DUPLICATE_KEY,
    }


def test_texts_that_json_leaves_open_are_read_or_refused_and_nothing_else(data_dir: Path) -> None:
    for _, raw in corpus(data_dir, "test_parsing", "i_"):
        for text in (raw, wrapped(raw)):
            try:
                parse_body(text)
            except BodyError as error:
                assert error.reason is Reason.MALFORMED  # noqa: PT017 - reading is as good as refusing


def test_texts_that_parsers_read_differently_keep_one_value_on_the_way_to_the_engine(data_dir: Path) -> None:
    texts = list(corpus(data_dir, "test_transform"))
    assert len(texts) == 22
    refused = {}
    for name, raw in texts:
        try:
            here = parse_body(wrapped(raw))
        except BodyError as error:
            refused[name] = error.reason
        else:
            assert json.loads(orjson.dumps(here)) == here, name
    duplicates = {name for name, reason in refused.items() if reason is Reason.DUPLICATE_KEY}
    assert duplicates == {
        "object_same_key_different_values.json",
        "object_same_key_same_value.json",
        "object_same_key_unclear_values.json",
    }


def test_naughty_strings_pass_unchanged(data_dir: Path) -> None:
    strings = json.loads((data_dir / "corpora" / "naughty-strings" / "blns.json").read_bytes())
    assert len(strings) == 515
    body = {"inputs": strings, "keys": {text: index for index, text in enumerate(strings)}}
    assert parse_body(json.dumps(body).encode()) == body
    assert parse_body(json.dumps(body, ensure_ascii=False).encode()) == body


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b"[]", "a list"),
        (b'"text"', "a string"),
        (b"12", "a number"),
        (b"true", "a boolean"),
        (b"null", "null"),
        (b'{"a":NaN}', "not JSON"),
        (b'{"a":1e999}', "not JSON"),
        (b'{"a":"\\ud800"}', "not JSON"),
        (b'{"a":"\xed\xa0\x80"}', "not JSON"),
        (b'{"a":"\xff"}', "not JSON"),
        (b'{"a":1}{"a":1}', "not JSON"),
        (b"{'a':1}", "line 1 column 2"),
        ('{"a":1}'.encode("utf-16"), "not JSON"),
    ],
)
def test_a_body_that_is_no_object_is_told_what_it_is(raw: bytes, told: str) -> None:
    error = refusal(raw)
    assert error.reason is Reason.MALFORMED
    assert told in str(error)


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        (b'{"a":1,"a":1}', "a"),
        (b'{"a":1,"b":{"x":[{"k":1,"k":2}]}}', "k"),
        (b'{"inputs":"a","\\u0069nputs":"b"}', "inputs"),
        (b'{"a\\"b":1,"a\\"b":2}', 'a\\"b'),
        (b'{"a\\\\":1,"a\\\\":2}', "a\\"),
        (b'{"":1,"":2}', ""),
        (b'{"x":{"deep":' + b"[" * 500 + b"]" * 500 + b'},"x":{"k":1,"k":1}}', "k"),
    ],
)
def test_a_key_that_stands_twice_is_named(raw: bytes, key: str) -> None:
    error = refusal(raw)
    assert error.reason is Reason.DUPLICATE_KEY
    assert error.param in {key, key.replace('\\"', '"')}
    assert "twice" in str(error)


def test_a_duplicate_key_that_hides_a_value_too_deep_for_the_second_parse_is_refused_all_the_same() -> None:
    raw = b'{"a":' + b"[" * 1020 + b"]" * 1020 + b',"a":1}'
    assert refusal(raw).reason is Reason.DUPLICATE_KEY


def test_a_long_or_hostile_key_is_told_on_one_bounded_line() -> None:
    key = "\r\n\x1b[31m" + "x" * 10_000
    told = str(refusal(f"{{{json.dumps(key)}:1,{json.dumps(key)}:2}}".encode()))
    assert len(told) < 200
    assert told.isprintable()
    assert told.isascii()


def test_equal_keys_in_different_objects_and_keys_that_only_look_alike_are_no_duplicates() -> None:
    body = {"a": {"a": [{"a": 1}, {"a": 1}]}, "A": 1, "a ": 2, "\u00e9": 3, "e\u0301": 4, '"a"': '"a"', "\\": "\\\\"}
    assert parse_body(json.dumps(body).encode()) == body


def test_nesting_is_accepted_up_to_its_bound_and_not_beyond() -> None:
    inner = MAX_DEPTH - 1
    assert parse_body(wrapped(b"[" * inner + b"]" * inner))
    assert f"{MAX_DEPTH} levels" in str(refusal(wrapped(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)))
    assert "not JSON" in str(refusal(wrapped(b"[" * 50_000)))


@pytest.mark.parametrize("item", [b"1", b'"text, with commas, [and] {brackets}"', b"[]", b"{ }", b"[\n]", b'"\\""'])
def test_values_are_accepted_up_to_their_bound_and_not_beyond(item: bytes) -> None:
    inside = MAX_NODES - 2  # beside the body and the list themselves
    assert len(parse_body(wrapped(b"[" + b",".join([item] * inside) + b"]"))["value"]) == inside
    error = refusal(wrapped(b"[" + b",".join([item] * (inside + 1)) + b"]"))
    assert f"{MAX_NODES:,} values" in str(error)


@pytest.mark.parametrize("item", [b"[1]", b'[""]', b'{"a":1}', b'{"a" : "b"}'])
def test_a_value_and_what_holds_it_are_two(item: bytes) -> None:
    inside = (MAX_NODES - 2) // 2
    assert len(parse_body(wrapped(b"[" + b",".join([item] * inside) + b"]"))["value"]) == inside
    assert "values" in str(refusal(wrapped(b"[" + b",".join([item] * (inside + 1)) + b"]")))


def test_values_behind_a_duplicate_key_count_too() -> None:
    hidden = b"[" + b",".join([b"1"] * MAX_NODES) + b"]"
    assert "values" in str(refusal(b'{"a":' + hidden + b',"a":1}'))


def test_text_full_of_commas_and_brackets_is_one_value() -> None:
    text = '",[{\\' * 200_000
    assert parse_body(orjson.dumps({"inputs": text})) == {"inputs": text}


keys = st.sampled_from(["a", "b", 'a"', "a\\", "\u00e9", ""])
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys | st.text(), inner, max_size=4),
    max_leaves=30,
)


@given(st.dictionaries(st.text(), json_values))
def test_what_a_plain_parser_reads_is_read_the_same(body: dict[str, Any]) -> None:
    assert parse_body(json.dumps(body).encode()) == body
    assert parse_body(json.dumps(body, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")) == body


def written(value: Any) -> str:
    """Write a value of which an object is a list of pairs, so that keys may repeat."""
    if isinstance(value, tuple):
        return "{" + ",".join(f"{json.dumps(key)}:{written(item)}" for key, item in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value)


def repeats(value: Any) -> bool:
    if isinstance(value, tuple):
        names = [key for key, _ in value]
        return len(set(names)) < len(names) or any(repeats(item) for _, item in value)
    return isinstance(value, list) and any(map(repeats, value))


pairs = st.recursive(
    st.none() | st.integers(0, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.lists(st.tuples(keys, inner), max_size=4).map(tuple),
    max_leaves=20,
)


@given(st.lists(st.tuples(keys, pairs), max_size=4).map(tuple))
def test_a_body_is_refused_exactly_when_an_object_in_it_names_a_key_twice(body: tuple[Any, ...]) -> None:
    raw = written(body).encode()
    if repeats(body):
        assert refusal(raw).reason is Reason.DUPLICATE_KEY
    else:
        assert parse_body(raw) == json.loads(raw)


@given(st.binary())
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        parse_body(raw)
    except BodyError as error:
        assert error.reason in {Reason.MALFORMED, Reason.DUPLICATE_KEY}  # noqa: PT017 - reading is as good as refusing
