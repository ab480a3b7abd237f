"""The first five minutes of a newcomer: a clean clone, `make serve`, and the commands that it prints."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fakes.engine import free_port

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

FIVE_MINUTES = 300.0


@contextmanager
def made(clone: Path, errors: Path, env: dict[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    """Run `make serve`; afterwards it, and what it started, is told to stop."""
    with errors.open("wb") as told:
        make = subprocess.Popen(["make", "serve"], cwd=clone, env=env, stdout=told, stderr=told, start_new_session=True)
        try:
            yield make
        finally:
            if make.poll() is None:
                os.killpg(make.pid, signal.SIGTERM)
            make.wait(60)


def test_make_serve_in_a_clean_clone_answers_what_it_says_to_try(repository: Path, tmp_path: Path) -> None:
    if shutil.which("git") is None or not (repository / ".git").exists():
        pytest.skip("not a git checkout, so that there is nothing to clone")
    clone, home, errors = tmp_path / "clone", tmp_path / "home", tmp_path / "told"
    home.mkdir()
    subprocess.run(["git", "clone", "--quiet", repository, clone], check=True)
    env = {
        "PATH": f"{clone / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "PIP_NO_CACHE_DIR": "1",
        **{name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.endswith("_proxy")},
        # The usual ports may be taken on a machine where tests run; nothing else differs from what a newcomer types.
        "LLMSHED_SERVER__LISTEN": f"127.0.0.1:{free_port()}",
        "LLMSHED_SERVER__ADMIN_LISTEN": f"127.0.0.1:{free_port()}",
        "LLMSHED_SERVER__DRAIN_DELAY_SECONDS": "0",
    }
    began = time.perf_counter()
    with made(clone, errors, env) as make:
        while '"event": "ready"' not in errors.read_text():
            if make.poll() is not None and "No matching distribution found" in errors.read_text():
                pytest.skip("no index of packages within reach")
            assert make.poll() is None, errors.read_text()
            assert time.perf_counter() - began < FIVE_MINUTES, errors.read_text()
            time.sleep(0.2)
        commands = [
            line.strip() for line in errors.read_text().splitlines() if line.startswith(("  curl", "  llmshed"))
        ]
        assert len(commands) == 3
        answers = [run(command, clone, env) for command in commands]
        took = time.perf_counter() - began
    print(f"\nclean clone: the first answers after {took:.0f} s")  # noqa: T201 - the figure for whoever runs it with -s
    assert took < FIVE_MINUTES
    whole, streamed, classified = answers
    assert '"role":"assistant"' in whole
    assert streamed.rstrip().endswith("data: [DONE]")
    assert "admit" in classified
    assert "Traceback" not in errors.read_text()


def run(command: str, place: Path, env: dict[str, str]) -> str:
    """Run a command as it was printed, as a newcomer pastes it."""
    done = subprocess.run(["sh", "-c", command], cwd=place, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout
