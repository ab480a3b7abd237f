"""Tests that bite: each single line that charges, releases, bounds or steps is broken once, and a test must fail.

A mutation is a line of one file and what it becomes; the fast tests about it run on a copy of the package that has it.
A line that is no longer there fails the test, so that the list follows the code.
"""

from pathlib import Path

import pytest

from fakes.mutations import Mutation, broken, copy_package, failing
from fakes.mutations_core import CORE_MUTATIONS, CORE_TESTS
from fakes.mutations_ladder import LADDER_MUTATIONS, LADDER_TESTS

LEAST_KILLED_RATIO = 0.9


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("mutations", "tests"), [(CORE_MUTATIONS, CORE_TESTS), (LADDER_MUTATIONS, LADDER_TESTS)], ids=["core", "ladder"]
)
def test_nine_of_ten_broken_lines_are_noticed(
    repository: Path, tmp_path: Path, mutations: tuple[Mutation, ...], tests: tuple[str, ...]
) -> None:
    copy = copy_package(repository, tmp_path)
    moved = [mutation for mutation in mutations if mutation.places(copy) != 1]
    assert moved == [], "these lines are no longer there, or not once"

    def suite_passes() -> bool:  # the first failure decides
        return not failing(repository, copy, tests, "-x", "-m", "not slow and not soak")

    assert suite_passes(), "the tests fail on the whole package already"
    alive = []
    for mutation in mutations:
        with broken(copy, mutation):
            if suite_passes():
                alive.append(mutation)
    killed = 1.0 - len(alive) / len(mutations)
    print(f"{killed:.0%} of {len(mutations)} broken lines were noticed; not: {alive}")  # noqa: T201 - read with -s
    assert killed >= LEAST_KILLED_RATIO, alive
