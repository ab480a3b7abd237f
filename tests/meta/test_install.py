"""What a person gets who installs the package into an empty environment: the command, its manual and its profiles."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "man").glob("*.[0-9]"))
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass(frozen=True, slots=True)
class Installed:
    """A fresh environment that holds llmshed, and a folder with nothing in it to start programs from.

    Args:
        environment: its prefix.
        elsewhere: the folder.
        pages: text of the manual pages that it was made from.
    """

    environment: Path
    elsewhere: Path
    pages: dict[str, str]

    @property
    def variables(self) -> dict[str, str]:
        """Return all that a person does: the environment's programs first on the PATH."""
        path = f"{self.environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return {"PATH": path, "HOME": str(self.elsewhere), "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"}

    def command(self, program: str, *arguments: str | Path) -> list[str]:
        found = shutil.which(program, path=self.variables["PATH"])
        assert found, f"{program} is not installed"
        return [found, *map(str, arguments)]

    def run(self, program: str, *arguments: str | Path) -> str:
        ran = subprocess.run(
            self.command(program, *arguments),
            cwd=self.elsewhere,
            env=self.variables,
            check=False,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so that it is not known what belongs to the project")
    place = tmp_path_factory.mktemp("install")
    source, environment, elsewhere = place / "source", place / "environment", place / "elsewhere"
    elsewhere.mkdir()
    for name in project_files(git):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    pages = {page.name: page.read_text("utf-8") for page in (source / "man").glob("*.[0-9]")}
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = subprocess.run(
        [environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile", source],
        check=False,
        capture_output=True,
        text=True,
    )
    if pip.returncode != 0 and "No matching distribution found" in pip.stderr:
        pytest.skip(f"no index of packages within reach: {pip.stderr.splitlines()[-1]}")
    assert pip.returncode == 0, pip.stderr
    shutil.rmtree(source)  # so that nothing can be found in it
    return Installed(environment, elsewhere, pages)


def project_files(git: str) -> list[str]:
    """Return what a clone of the tree as it stands would hold: no environment, no cache, no build of before."""
    listing = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def test_the_command_runs(installed: Installed) -> None:
    assert installed.run("llmshed", "--version").startswith("llmshed ")


def test_the_manual_is_complete_where_there_is_no_man(installed: Installed) -> None:
    listed = installed.run("llmshed", "man", "--list")
    assert [name for name in installed.pages if f"{name[:-2]}({name[-1]})" not in listed] == []
    assert installed.run("llmshed", "man").startswith("LLMSHED(1)\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_man_finds_a_page_by_the_path_of_the_command(installed: Installed, page: Path) -> None:
    if shutil.which("man") is None:
        pytest.skip("man is not installed")
    found = Path(installed.run("man", "-w", page.suffix[1:], page.stem).strip())
    assert found.is_relative_to(installed.environment)
    assert found.read_text("utf-8") == installed.pages[page.name]


def test_the_shipped_profiles_are_laid_down_and_used(installed: Installed) -> None:
    example = installed.environment / "share" / "llmshed" / "profiles" / "examples" / "worked-example.toml"
    shown = installed.run(
        "llmshed", "classify", "--input-tokens", "14000", "--max-output", "4000",
        "--profile", example, "--active", "58000", "--queued", "8000", "--json",
    )  # fmt: skip
    assert '"headroom_tokens": 20400' in shown
    assert '"profile": "simulated@' in installed.run("llmshed", "classify", "Hello", "--json")


def test_the_gateway_comes_up_in_front_of_its_own_replica_and_goes_down(installed: Installed) -> None:
    command = installed.command(
        "llmshed", "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
        "--set", "server.drain_delay_seconds=0",
    )  # fmt: skip
    with subprocess.Popen(
        command, cwd=installed.elsewhere, env=installed.variables, stderr=subprocess.PIPE, text=True
    ) as gateway:
        assert gateway.stderr is not None
        said = []
        for line in gateway.stderr:
            said.append(line)
            if '"event": "ready"' in line:
                break
        gateway.terminate()
        said += gateway.stderr.readlines()
    assert gateway.returncode == 0, "".join(said)
    assert any("llmshed classify" in line for line in said), "the commands to try are told"
