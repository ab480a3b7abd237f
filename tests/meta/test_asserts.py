"""`assert` guards nothing: Python leaves it out under -O, so what is refused by one is let through there."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = sorted(path for folder in ("src", "commands") for path in (ROOT / folder).rglob("*.py"))


def leans_on_asserts(source: str) -> bool:
    """Say whether a module has an assert, asks whether Python runs without them, or catches what one raises."""
    return any(
        isinstance(node, ast.Assert) or (isinstance(node, ast.Name) and node.id in {"AssertionError", "__debug__"})
        for node in ast.walk(ast.parse(source))
    )


def test_no_module_leans_on_an_assert() -> None:
    assert len(PRODUCT) > 300
    leaning = [path for path in PRODUCT if leans_on_asserts(path.read_text("utf-8"))]
    assert [str(path.relative_to(ROOT)) for path in leaning] == []


@pytest.mark.parametrize("source", ["assert key", "raise AssertionError", "if __debug__:\n    check()"])
def test_a_planted_one_is_found(source: str) -> None:
    assert leans_on_asserts(source)
    assert not leans_on_asserts("assert_never(value)")
