"""A copy of the package in which one piece of text is replaced, and tests run on it: do they notice?"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?)(?:\[|\s|$)", re.MULTILINE)


class Mutation(NamedTuple):
    """A piece of text that a file of the package holds once, by its path under `src/llmshed`, and its replacement."""

    file: str
    old: str
    new: str

    def path(self, package: Path) -> Path:
        return package / "llmshed" / self.file

    def places(self, package: Path) -> int:
        """Return how often the text stands in its file; 0 also where there is no such file."""
        path = self.path(package)
        return path.read_text("utf-8").count(self.old) if path.is_file() else 0


class Guard(NamedTuple):
    """What keeps a fault away that is known from elsewhere: `tests` (names without parameters) fail without it."""

    against: str
    mutation: Mutation
    tests: tuple[str, ...]


def copy_package(repository: Path, place: Path) -> Path:
    """Copy the package to `place`, which is returned, to be broken and mended there."""
    shutil.copytree(repository / "src" / "llmshed", place / "llmshed", ignore=shutil.ignore_patterns("__pycache__"))
    return place


@contextmanager
def broken(copy: Path, mutation: Mutation) -> Iterator[None]:
    """Break the copy, and mend it afterwards."""
    path = mutation.path(copy)
    whole = path.read_text("utf-8")
    path.write_text(whole.replace(mutation.old, mutation.new), "utf-8")
    try:
        yield
    finally:
        path.write_text(whole, "utf-8")


def failing(repository: Path, copy: Path, tests: Iterable[str], *options: str) -> set[str]:
    """Run tests of any marker on the copy, and return the names of those that fail, without their parameters."""
    usual = ("-q", "-m", "", "-rfE", "--tb=no", "-p", "no:cacheprovider", "--timeout", "120")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *usual, *options, *dict.fromkeys(tests)],
        cwd=repository,
        env=os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"},
        capture_output=True,
        check=False,
        timeout=900,
    )
    told = ran.stdout.decode(errors="replace")
    assert ran.returncode in {0, 1, 2}, told
    found = set(_FAILED.findall(told))
    assert bool(found) == bool(ran.returncode), told
    return found
