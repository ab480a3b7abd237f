"""Real clients, each in an environment of its own: pinned, made once, and kept in the user's cache."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

INSTALL_SECONDS = 900
FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a client runs.

    Args:
        name: of its folder in the cache.
        packages: pinned requirements for pip, or for npm if `node`; empty for the environment of the tests themselves.
        node: whether it is one for Node.
    """

    name: str
    packages: tuple[str, ...] = ()
    node: bool = False

    @contextmanager
    def client(self) -> Iterator["Client"]:
        """Run the script that asks; the environment is made first if it is not there yet."""
        with self._started(self.made() if self.packages else None) as process:
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                yield Client(process.stdin, process.stdout)
            finally:
                process.kill()  # it may be asleep in a client, and holds nothing

    def _started(self, folder: Path | None) -> "subprocess.Popen[str]":
        variables = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        if folder is None:
            command = [sys.executable, str(FOLDER / "clients_ask.py")]
        elif self.node:
            command = ["node", str(FOLDER / "clients_ask.cjs")]
            variables["NODE_PATH"] = str(folder / "node_modules")
        else:
            command = [str(folder / "bin" / "python"), str(FOLDER / "clients_ask.py")]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=variables, text=True
        )

    def made(self) -> Path:
        """Return the folder of the environment; one process makes it, and others wait for that.

        A registry that does not answer skips the test with what the installer says.
        """
        if self.node and shutil.which("npm") is None:
            pytest.skip("npm is not installed")
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "llmshed-tests" / "clients"
        cache.mkdir(parents=True, exist_ok=True)
        version = "node" if self.node else f"{sys.version_info.major}.{sys.version_info.minor}"
        pinned = hashlib.sha256(" ".join((version, *self.packages)).encode()).hexdigest()[:12]
        folder = cache / f"{self.name}-{pinned}"
        with (cache / f"{folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "complete").exists():
                shutil.rmtree(folder, ignore_errors=True)
                self._install(folder)
                (folder / "complete").touch()
        return folder

    def _install(self, folder: Path) -> None:
        if self.node:
            folder.mkdir()
            run_installer(
                "npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--loglevel", "error", *self.packages
            )
            return
        run_installer(sys.executable, "-m", "venv", folder)
        pip = (folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
        run_installer(*pip, *self.packages)


def run_installer(*command: str | Path) -> None:
    """Run a step of an installation; the test is skipped with what it says where it fails."""
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=INSTALL_SECONDS)
    if done.returncode:
        pytest.skip(f"{Path(command[0]).name} could not install: {done.stderr.strip()[-300:]}")


@dataclass(frozen=True, slots=True)
class Job:
    """One request of a client: the fields are those of `clients_ask.Job`."""

    id: str
    asks: str
    url: str
    key: str = "none"
    model: str = "tgi"
    prompt: str = "Hello"
    tokens: int = 2
    headers: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a job: a text, or the class of what was raised and what it says."""

    id: str
    text: str | None = None
    raised: str | None = None
    says: str = ""


class Client:
    """A running script; one caller at a time asks it."""

    def __init__(self, jobs: IO[str], reports: IO[str]) -> None:
        self._jobs = jobs
        self._reports = reports

    def ask(self, jobs: list[Job]) -> list[Report]:
        """Run all jobs at once, and return their reports in order; blocks until the last has ended."""
        lines = [{name: getattr(job, name) for name in job.__slots__} for job in jobs]
        self._jobs.write(json.dumps(lines) + "\n")
        self._jobs.flush()
        line = self._reports.readline()
        assert line, "the client's script ended; run it by hand with the jobs to see why"
        return [Report(**fields) for fields in json.loads(line)]
