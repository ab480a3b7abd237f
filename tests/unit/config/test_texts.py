"""What the TOML reader cannot read is told with its line."""

import pytest

from llmshed.config.texts import TomlSyntaxError, line_of, read_toml


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = 1\na = 2\n", "2: column 6: not TOML: "),
        ("a = " + "[" * 5_000 + "]" * 5_000, "1: not TOML that can be read: too many tables or lists"),
        (f"a = 1\n# 12\nb = -{'7' * 6_000}\n", "3: a number of 6000 digits is longer than any that is read"),
        (f"a = {'1_' * 5_000}1", "1: a number of 5001 digits is longer"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused_with_its_line(text: str, told: str) -> None:
    with pytest.raises(TomlSyntaxError) as refused:
        read_toml(text)
    assert str(refused.value).startswith(told)


def test_each_path_has_its_line_or_that_of_the_table_around_it() -> None:
    data, lines = read_toml("[a]\nb = 1\n\n[a.c]\nd = 2\n")
    assert data == {"a": {"b": 1, "c": {"d": 2}}}
    assert [line_of(lines, path) for path in (("a", "b"), ("a", "c", "d"), ("a", "c", "e"), ("x",))] == [2, 5, 4, 1]
