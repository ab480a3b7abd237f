import json
from typing import Any

import pytest

from llmshed.drilling.cases import MOST_CASES, MOST_PROBLEMS, SetError, read_cases

CASE: dict[str, Any] = {"id": "a", "messages": [{"role": "user", "content": "x"}], "checks": [{"exact": "y"}]}


def lines(*cases: Any) -> bytes:
    return b"\n".join(json.dumps(case).encode() for case in cases)


def problems(content: bytes) -> list[str]:
    with pytest.raises(SetError) as caught:
        read_cases(content, "set.jsonl")
    return str(caught.value).splitlines()


def test_a_set_is_read_with_its_empty_lines_passed_over() -> None:
    full = CASE | {"id": "b", "weight": 2, "max_tokens": 5, "tools": [{"type": "function"}], "llmshed": {"context": {}}}
    one, two = read_cases(b"\n" + lines(CASE, full) + b"\r\n\n", "set.jsonl")
    assert (one.id, one.weight, one.max_tokens) == ("a", 1.0, None)
    assert one.body("m") == {
        "model": "m", "messages": (CASE["messages"][0],), "stream": True, "stream_options": {"include_usage": True},
        "temperature": 0, "seed": 0,
    }  # fmt: skip
    body = two.body("m")
    assert (body["max_tokens"], body["tools"], body["llmshed"]) == (5, ({"type": "function"},), {"context": {}})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"checks": []}, "checks: Tuple should have at least 1 item"),
        ({"checks": [{}]}, "checks.0: needs exactly one of exact, regex, json_schema, scorer"),
        ({"checks": [{"exact": "a", "regex": "a"}]}, "checks.0: needs exactly one of"),
        ({"checks": [{"regex": "("}]}, "checks.0: regex: missing ), unterminated subpattern"),
        ({"checks": [{"json_schema": {}, "ignore_case": True}]}, "ignore_case belongs to exact and regex"),
        ({"checks": [{"scorer": []}]}, "checks.0.scorer"),
        ({"checks": [{"exact": "a", "note": "b"}]}, "checks.0.note: Extra inputs are not permitted"),
        ({"weight": 0}, "weight: Input should be greater than 0"),
        ({"messages": []}, "messages"),
        ({"max_tokens": "5"}, "max_tokens: Input should be a valid integer"),
        ({"model": "m"}, "model: Extra inputs are not permitted"),
    ],
)
def test_a_line_that_is_no_case_is_told_with_its_place(change: dict[str, Any], words: str) -> None:
    (problem,) = problems(lines(CASE, CASE | {"id": "b"} | change))
    assert problem.startswith("set.jsonl: line 2: ")
    assert words in problem


def test_all_mistakes_are_told_at_once_up_to_a_bound() -> None:
    twice = problems(lines(CASE, CASE) + b"\n{")
    assert twice[0] == "set.jsonl: line 2: id: `a` is that of line 1, too"
    assert twice[1].startswith("set.jsonl: line 3: is not JSON")
    assert len(problems(b"{\n" * 1000)) == MOST_PROBLEMS


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_set_without_cases_is_none(content: bytes) -> None:
    assert problems(content) == [f"set.jsonl: holds 0 cases; from 1 to {MOST_CASES:,} are taken, one a line"]


def test_a_set_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmshed.drilling.cases.MOST_CASES", 1)
    assert problems(lines(CASE, CASE | {"id": "b"}))
