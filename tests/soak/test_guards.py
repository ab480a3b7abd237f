"""Every known trap of the libraries and every known fault of others is kept away by a guard, and a test misses it.

Each guard is taken out of a copy of the package, once, and its tests run on the copy: each of them must fail.
`pytest -s` shows the table.
"""

from pathlib import Path

import pytest

from fakes.mutations import Guard, broken, copy_package, failing
from fakes.mutations_faults import FAULTS
from fakes.mutations_traps import TRAPS

GUARDS = TRAPS + FAULTS
HANGS_SECONDS = "40"
"""What waits for ever without its guard has failed by then; each test takes a few seconds with it."""


def row(guard: Guard, failed: set[str]) -> str:
    """Return what keeps away what, and which tests noticed that it was gone."""
    first_line = guard.mutation.old.partition("\n")[0]
    noticed = ", ".join(test.rpartition("/")[2] for test in guard.tests if test in failed) or "NOBODY"
    return f"{guard.against}\n    {guard.mutation.file}: {first_line}\n    noticed by {noticed}"


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_no_guard_can_be_taken_out_unnoticed(repository: Path, tmp_path: Path) -> None:
    copy = copy_package(repository, tmp_path)
    assert failing(repository, copy, [test for guard in GUARDS for test in guard.tests]) == set()
    unnoticed = []
    for guard in GUARDS:
        with broken(copy, guard.mutation):
            failed = failing(repository, copy, guard.tests, "--timeout", HANGS_SECONDS)
        print(f"\n{row(guard, failed)}", flush=True)  # noqa: T201 - the table, read with -s
        if not set(guard.tests) <= failed:
            unnoticed.append((guard.against, sorted(set(guard.tests) - failed)))
    assert unnoticed == []
