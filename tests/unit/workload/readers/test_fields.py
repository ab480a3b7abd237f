"""Fields of a line."""

import pytest

from llmshed.errors import TraceError
from llmshed.workload.readers.fields import name, number, seconds, token_count

NO_NUMBERS = [
    "",
    " ",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "-1",
    "+1",
    "0x10",
    "1_000",
    "1e",
    "--1",
    "１",  # noqa: RUF001 - a digit that float() takes
    "1,5",
    "None",
    "1" * 400,
]


@pytest.mark.parametrize(
    ("text", "count"), [("0", 0), (" 12 ", 12), ("12.0", 12), ("007", 7), ("10000000", 10_000_000)]
)
def test_counts_are_whole_numbers(text: str, count: int) -> None:
    assert token_count(text, "tokens", 3) == count


@pytest.mark.parametrize("text", [*NO_NUMBERS, "12.5", "1e3", "10000001", "1.", ".0"])
def test_what_is_no_count_is_told(text: str) -> None:
    with pytest.raises(TraceError, match=r"line 3: tokens is .*; a whole number from 0 to 10000000 is accepted"):
        token_count(text, "tokens", 3)


@pytest.mark.parametrize(("text", "value"), [("0", 0.0), ("1.5", 1.5), ("1e3", 1000.0), ("2.5E-1", 0.25), ("3.", 3.0)])
def test_numbers_are_plain(text: str, value: float) -> None:
    assert number(text, "rate", 3) == value
    assert seconds(text, "at", 3) == value


@pytest.mark.parametrize("text", [*NO_NUMBERS, "1e999"])
def test_what_is_no_number_is_told(text: str) -> None:
    with pytest.raises(TraceError, match=r"line 3: rate is .*; a number from 0 on is accepted"):
        number(text, "rate", 3)


def test_times_are_bounded() -> None:
    with pytest.raises(TraceError, match=r"line 3: at is '1e10'; seconds from 0 to 1e\+09 are accepted"):
        seconds("1e10", "at", 3)


@pytest.mark.parametrize("text", ["a", " a b ", "ü", "x" * 128])
def test_names_lose_the_spaces_around_them(text: str) -> None:
    assert name(text, "tenant", 3) == text.strip()


@pytest.mark.parametrize("text", ["", "  ", "x" * 129, "a\x1b[31m", "a\x00", "\u202eabc"])
def test_what_is_no_name_is_told(text: str) -> None:
    with pytest.raises(TraceError, match=r"line 3: tenant is .*; a name of 1 to 128 printable characters is accepted"):
        name(text, "tenant", 3)
