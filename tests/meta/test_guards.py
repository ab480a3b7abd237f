"""What is broken on purpose follows the code: each piece stands in its file, once, and the tests named exist."""

import ast
from pathlib import Path

import pytest

from fakes.mutations import Guard, Mutation
from fakes.mutations_core import CORE_MUTATIONS
from fakes.mutations_faults import FAULTS
from fakes.mutations_ladder import LADDER_MUTATIONS
from fakes.mutations_traps import TRAPS

GUARDS = TRAPS + FAULTS


def named_in(file: Path) -> set[str]:
    """Return the names of the tests of a file, those of a class behind its name."""
    found = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name, body=body):
                inner = [one for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
                found |= {f"{name}::{one.name}" for one in inner}
            case _:
                pass
    return found


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.against)
def test_a_guard_stands_in_its_file_once_and_its_tests_exist(repository: Path, guard: Guard) -> None:
    assert guard.mutation.places(repository / "src") == 1, guard.mutation.old
    assert guard.tests
    for test in guard.tests:
        file, _, name = test.partition("::")
        assert name in named_in(repository / file), test


def test_nothing_is_guarded_twice() -> None:
    assert len({guard.against for guard in GUARDS}) == len(GUARDS)
    assert len({guard.mutation for guard in GUARDS}) == len(GUARDS)


@pytest.mark.parametrize("mutation", CORE_MUTATIONS + LADDER_MUTATIONS, ids=lambda mutation: mutation.old[:60])
def test_a_line_that_is_broken_on_purpose_stands_in_its_file_once(repository: Path, mutation: Mutation) -> None:
    assert mutation.places(repository / "src") == 1, mutation.old
