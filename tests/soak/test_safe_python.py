"""Python's own pitfalls: code that means something else under -O, and what bandit knows to be dangerous."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.clients import Environment

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]

BANDIT = Environment("bandit", ("bandit==1.9.4",))
AT_THE_DOOR = (
    "tests/unit/gateway",
    "tests/integration/test_client_bodies.py",
    "tests/integration/test_foreign_addresses.py",
    "tests/integration/test_framing_bounds.py",
    "tests/integration/test_serve_keys.py",
    "tests/integration/test_serve_refusals.py",
    "tests/integration/test_serve_routes.py",
    "tests/integration/test_serve_walk.py",
    "tests/integration/test_show_privacy_crashes.py",
)
"""What refuses: where an assert that guards would let somebody in."""


def test_without_asserts_the_door_refuses_what_it_refuses_with_them(repository: Path) -> None:
    """pytest rewrites the asserts of test modules, so that they hold here too; those of the fakes are left out."""
    # pytest warns that the asserts of other modules mean nothing, which is why they are left out.
    options = ("-p", "no:cacheprovider", "-W", "ignore::pytest.PytestConfigWarning")
    command = (sys.executable, "-O", "-m", "pytest", *options, *AT_THE_DOOR)
    done = subprocess.run(
        command, cwd=repository, env=os.environ.copy(), capture_output=True, check=False, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_bandit_finds_nothing_of_high_severity(repository: Path) -> None:
    bandit = BANDIT.made() / "bin" / "bandit"
    command = (bandit, "--quiet", "--recursive", "-lll", "src", "commands")
    done = subprocess.run(command, cwd=repository, capture_output=True, check=False, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_bandit_would_find_it(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text("import subprocess\nsubprocess.run(input(), shell=True)\n")
    bandit = BANDIT.made() / "bin" / "bandit"
    done = subprocess.run(
        (bandit, "--quiet", "-lll", tmp_path / "planted.py"), capture_output=True, check=False, text=True, timeout=300
    )
    assert done.returncode == 1
    assert "B602" in done.stdout
