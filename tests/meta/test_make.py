"""The Makefile on machines that lack something: what is missing is named, and nothing is left half made."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("sh", "make", "grep", "sed", "expand", "touch", "id", "rm", "chmod")
PYTHON_THAT_CANNOT_MAKE_ENVIRONMENTS = f"""#!/bin/sh
case "$*" in *ensurepip*|*venv*) echo "no module" >&2; exit 1;; esac
exec {sys.executable} "$@"
"""
APT_GET = """#!/bin/sh
echo "$@" >> {asked}
[ "$1" = install ] || exit 0
{policy} || echo "no daemon is started" >> {asked}
"""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@dataclass(frozen=True, slots=True)
class Machine:
    """A folder with the files that make reads, and a PATH on which nothing else is.

    Args:
        clone: the folder.
        programs: the only folder of the PATH.
    """

    clone: Path
    programs: Path

    def has(self, name: str, script: str) -> None:
        """Put a program on the PATH."""
        program = self.programs / name
        program.unlink(missing_ok=True)
        program.write_text(script)
        program.chmod(0o755)

    def make(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.run(["make", "-f", "Makefile", *words], variables)

    def run(self, command: list[str], variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        environ = {"PATH": str(self.programs), **variables}
        return subprocess.run(command, cwd=self.clone, env=environ, check=False, capture_output=True, text=True)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    clone, programs = tmp_path / "clone", tmp_path / "programs"
    (clone / "tests").mkdir(parents=True)
    programs.mkdir()
    for name in ("Makefile", "pyproject.toml", "tests/debian_tools.sh"):
        shutil.copyfile(ROOT / name, clone / name)
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, f"{tool} is part of every Debian"
        (programs / tool).symlink_to(found)
    return Machine(clone, programs)


def test_help_lists_every_target_that_is_described(machine: Machine) -> None:
    described = re.findall(r"^([a-z-]+):.*## (.+)$", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)

    listed = [line.split(maxsplit=1) for line in machine.make().stdout.splitlines()]

    assert {name for name, _ in described} >= {"serve", "test", "lint", "bench", "soak", "man", "help"}
    assert listed == [[name, text] for name, text in described]


def test_without_any_python_the_package_to_install_is_named(machine: Machine) -> None:
    ran = machine.make("serve")

    assert ran.returncode != 0
    assert "python3-venv" in ran.stderr
    assert not (machine.clone / ".venv").exists()


def test_a_python_that_is_too_old_or_does_not_start_is_passed_over(machine: Machine) -> None:
    machine.has("python3.11", "#!/bin/sh\nexit 127\n")
    machine.has("python3", "#!/bin/sh\nexit 1\n")
    machine.has("python3.13", f'#!/bin/sh\nexec {sys.executable} "$@"\n')

    ran = machine.make("-n", "serve")

    assert f"{machine.programs}/python3.13 -m venv" in ran.stdout


def test_a_python_that_cannot_make_environments_leaves_no_half_of_one(machine: Machine) -> None:
    machine.has("python3.11", PYTHON_THAT_CANNOT_MAKE_ENVIRONMENTS)

    ran = machine.make("serve")

    assert ran.returncode != 0
    assert "python3-venv" in ran.stderr
    assert not (machine.clone / ".venv").exists()


def test_whoever_is_root_gets_the_debian_packages_that_lack_and_no_others(machine: Machine) -> None:
    machine.has("python3.11", PYTHON_THAT_CANNOT_MAKE_ENVIRONMENTS)
    machine.has("id", "#!/bin/sh\necho 0\n")
    machine.has("mandoc", "#!/bin/sh\n")
    policy, asked = machine.clone / "policy-rc.d", machine.clone / "asked"
    machine.has("apt-get", APT_GET.format(asked=asked, policy=policy))

    machine.make("debian-tools", POLICY_RC_D=str(policy))

    assert not policy.exists()
    assert asked.read_text().splitlines() == [
        "update -qq",
        "install -y -qq --no-install-recommends python3-venv prometheus faketime",
        "no daemon is started",
    ]


def test_where_nothing_lacks_nothing_is_installed_and_where_nothing_may_be_it_is_said(machine: Machine) -> None:
    machine.has("id", "#!/bin/sh\necho 1000\n")
    machine.has("python3.11", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    without = machine.make("debian-tools")
    machine.has("mandoc", "#!/bin/sh\n")
    machine.has("promtool", "#!/bin/sh\n")
    machine.has("faketime", "#!/bin/sh\n")
    complete = machine.make("debian-tools")

    assert (without.returncode, complete.returncode) == (0, 0)
    assert "mandoc prometheus faketime" in without.stderr
    assert complete.stderr == ""


def test_the_environment_is_made_again_when_the_dependencies_change(machine: Machine) -> None:
    machine.has("python3.11", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (machine.clone / ".venv").mkdir()
    for mark in (".installed-run", ".installed-dev"):
        (machine.clone / ".venv" / mark).touch()
    before = machine.make("-q", ".venv/.installed-dev").returncode
    os.utime(machine.clone / "pyproject.toml", (2**32, 2**32))

    after = machine.make("-q", ".venv/.installed-dev").returncode

    assert (before, after) == (0, 1)
