"""The HTTP library's floor: below it are faults of framing and of cost whose kinds the tests of framing hold."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

FLOOR = (3, 14, 5)
"""Duplicate Host and controls in answers (3.13.4), chunk floods (3.13.3), line bounds across segments and pipelines
without end (3.14.1), a stale timer on a pooled connection (3.14.2), keys kept across redirects (3.14.3)."""


def test_no_version_with_a_known_fault_can_be_installed(repository: Path) -> None:
    dependencies = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["dependencies"]
    (wanted,) = [line for line in dependencies if line.startswith("aiohttp")]
    found = re.fullmatch(r"aiohttp>=([0-9]+)\.([0-9]+)\.([0-9]+),<([0-9]+)", wanted)
    assert found is not None
    assert tuple(map(int, found.groups()[:3])) >= FLOOR
    assert int(found[4]) == FLOOR[0] + 1  # the next great version may parse otherwise


def test_the_version_that_is_tested_is_one_of_them() -> None:
    assert tuple(map(int, re.findall(r"[0-9]+", version("aiohttp"))[:3])) >= FLOOR
