"""Tables of fields: strict kinds, one sentence an error."""

from typing import Any

import pytest

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError
from llmshed.engines.fields import (
    FieldTable,
    Kind,
    counted,
    dropped,
    forwarded,
    kept_fields,
    malformed,
    refused,
    shown,
    take_fields,
)

TABLE: FieldTable = {
    "max_tokens": counted(Kind.COUNT, "ceiling"),
    "temperature": forwarded(Kind.NUMBER),
    "user": dropped("bookkeeping"),
    "api_base": refused("replicas are chosen by the gateway's configuration"),
}


def refusal(given: dict[str, Any], path: str = "") -> BodyError:
    with pytest.raises(BodyError) as caught:
        take_fields(TABLE, given, path)
    return caught.value


def test_fields_are_taken_in_the_order_they_were_sent_and_nulls_are_absent() -> None:
    given = {"user": "u", "temperature": 0.5, "max_tokens": None, "api_base": None, "unheard_of": None}
    assert list(take_fields(TABLE, given).items()) == [("user", "u"), ("temperature", 0.5)]


def test_what_is_dropped_does_not_go_on() -> None:
    assert kept_fields(TABLE, take_fields(TABLE, {"user": "u", "max_tokens": 3})) == {"max_tokens": 3}


def test_an_unknown_field_is_named_with_the_nearest_that_is_known() -> None:
    error = refusal({"max_token": 3})
    assert error.reason is Reason.UNSUPPORTED_FIELD
    assert error.param == "max_token"
    assert "did you mean `max_tokens`?" in str(error)


def test_an_unknown_field_without_a_neighbour_is_told_what_is_accepted() -> None:
    assert "accepted: max_tokens, temperature" in str(refusal({"zzz": 3}))


def test_a_refused_field_says_why_and_is_never_suggested() -> None:
    error = refusal({"api_base": "http://169.254.169.254/"})
    assert error.reason is Reason.UNSUPPORTED_FIELD
    assert str(error) == "`api_base` is not accepted here: replicas are chosen by the gateway's configuration"
    assert "did you mean" not in str(refusal({"api_bas": 1}))


def test_the_path_of_an_inner_field_is_told() -> None:
    error = refusal({"max_tokens": 0}, "parameters.")
    assert error.param == "parameters.max_tokens"
    assert str(error) == "`parameters.max_tokens` must be a whole number from 1 to 2,147,483,647, not 0"


@pytest.mark.parametrize("value", [0, -1, 2**31, 2**63, 1.0, 1.5, True, False, "1", "", [1], {}, []])
def test_a_count_is_a_whole_number_that_fits_32_bits_and_nothing_else(value: object) -> None:
    error = refusal({"max_tokens": value})
    assert error.reason is Reason.MALFORMED
    assert error.param == "max_tokens"


@pytest.mark.parametrize(
    ("kind", "fitting", "unfit"),
    [
        (Kind.ANY, ["", 0, [], {}, False], []),
        (Kind.BOOLEAN, [True, False], [0, 1, "true", []]),
        (Kind.INTEGER, [0, 2**31 - 1], [-1, 2**31, True, 0.0, "0"]),
        (Kind.COUNT, [1, 2**31 - 1], [0, True, 2.0]),
        (Kind.COPIES, [1, 128], [0, 129, True, 1.0, "2"]),
        (Kind.SEED, [0, 2**64 - 1], [-1, 2**64, True, 1.0]),
        (Kind.NUMBER, [0, -1, 0.5], [True, "0.5", [], {}]),
        (Kind.TEXT, ["", "a"], [1, ["a"], {}, True]),
        (Kind.HINT, ["", "a" * 256], ["a" * 257, 1, []]),
        (Kind.TEXTS, ["a", [], ["a", "b"]], [1, ["a", 1], {}]),
        (Kind.CHOICE, ["auto", {}], [1, [], True]),
        (Kind.OBJECT, [{}, {"a": 1}], [[], "{}", 1]),
        (Kind.OBJECTS, [[], [{}]], [{}, ["a"], [{}, 1], "[]"]),
    ],
)
def test_every_kind_takes_its_own_and_no_other(kind: Kind, fitting: list[object], unfit: list[object]) -> None:
    table = {"field": counted(kind, "")}
    for value in fitting:
        assert take_fields(table, {"field": value}) == {"field": value}
    for value in unfit:
        with pytest.raises(BodyError) as caught:
            take_fields(table, {"field": value})
        assert kind.value.text in str(caught.value)


def test_an_error_never_repeats_a_text_of_the_client() -> None:
    for value in ("a secret", ["a secret"], {"a secret": "a secret"}):
        assert "secret" not in str(refusal({"max_tokens": value}))


@pytest.mark.parametrize("name", ["\r\nSet-Cookie: a", "\x00", "\u202egnp", "\ud83d\ude00", "x" * 5000, "\u2028", '"`'])
def test_a_hostile_name_is_shown_on_one_short_line_of_ascii(name: str) -> None:
    told = shown(name)
    assert told.isascii()
    assert told.isprintable()
    assert len(told) <= 64 * 12 + 2  # a character outside the basic plane takes two escapes
    assert shown(name) in str(refusal({name: 1}))


def test_a_name_is_shown_whole_up_to_64_characters() -> None:
    assert shown("x" * 64) == f"`{'x' * 64}`"
    assert shown("x" * 65) == f"`{'x' * 61}...`"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (0.5, "0.5"),
        ("", "an empty string"),
        ("a", "a string"),
        ([], "an empty list"),
        ([1, 2.5], "a list of numbers"),
        (["a"], "a list of strings"),
        ([None, None], "a list of nulls"),
        ([True], "a list of booleans"),
        ([[], [1]], "a list of lists"),
        ([{}], "a list of objects"),
        ([1, "a"], "a list of several kinds"),
        ({"a": 1}, "an object"),
    ],
)
def test_a_wrong_value_is_told_by_its_kind(value: object, told: str) -> None:
    assert str(malformed("field", "something", value)) == f"`field` must be something, not {told}"
