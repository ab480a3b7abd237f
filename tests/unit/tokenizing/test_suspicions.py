from typing import Any

import pytest
from tokenizers import normalizers

from llmshed.tokenizing.suspicions import backtracking, expansion, nested_repetition


@pytest.mark.parametrize(
    ("pattern", "group"),
    [
        ("(a+)+", "(a+)+"),
        ("x(?:[a-z]*)*y", "(?:[a-z]*)*"),
        (r"(\w+\s?)+$", r"(\w+\s?)+"),
        ("((a+)b)*", "((a+)b)*"),
        ("(a{2,}){1,}", "(a{2,}){1,}"),
        ("(?:(?:a|b+)c)+?", "(?:(?:a|b+)c)+"),
        (r"([^)]+)*", "([^)]+)*"),
        ("([]+]a+)*", "([]+]a+)*"),
        ("(a+)", None),
        ("(ab)+", None),
        ("(a+)?", None),
        ("(a+){1,3}", None),
        ("(a{2})+", None),
        (r"(\(\+)+", None),
        ("([*+])+", None),
        ("(?>a+)+", None),
        ("(a++)+", None),
        ("(a+)++", None),
        ("(?i:'s|'t)+", None),
        (r"\s+(?!\S)|\s+", None),
        ("((", None),
        ("a)+", None),
        ("[a", None),
        ("{", None),
        ("", None),
    ],
)
def test_a_repetition_inside_a_repetition_is_found(pattern: str, group: str | None) -> None:
    assert nested_repetition(pattern) == group


def test_every_pattern_of_the_file_is_looked_at() -> None:
    bad: dict[str, Any] = {"pattern": {"Regex": "(a+)+"}}
    good: dict[str, Any] = {"type": "Split", "pattern": {"String": "(a+)+"}}
    described = {
        "normalizer": {"type": "Replace", "content": "", **bad},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [good, {"type": "Split", **bad}, {"type": "ByteLevel"}]},
    }
    found = list(backtracking(described))
    assert [(one.level, one.kind) for one in found] == [("warning", "backtracking")] * 2
    assert "normalizer Replace" in found[0].detail
    assert "pre_tokenizer Split" in found[1].detail
    assert list(backtracking({})) == []


def test_growth_is_a_note_up_to_that_of_canonical_forms_and_a_warning_beyond() -> None:
    for form, level, code in (("NFC", "note", "U+1D1"), ("NFKC", "warning", "U+FDFA"), ("NFKD", "warning", "U+FDFA")):
        found = expansion(getattr(normalizers, form)().normalize_str)
        assert found is not None
        assert (found.level, found.kind) == (level, "expansion")
        assert code in found.detail
    assert "11 bytes of each byte of U+FDFA, 18 characters" in str(expansion(normalizers.NFKC().normalize_str))
    assert expansion(str.strip) is None
    assert expansion(None) is None
