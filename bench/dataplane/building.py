"""The replica and the clients, compiled once into the bench's own folder of cached things."""

import os
import subprocess
from pathlib import Path

from dataplane.processes import NotRunningError, tool

HERE = Path(__file__).resolve().parent
_FLAGS = ("-std=gnu17", "-O2", "-Wall", "-Wextra")


def cache_folder() -> Path:
    """Return where compiled programs and environments of other proxies are kept between runs; it may be deleted."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(root) / "llmshed-dataplane"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def built(name: str) -> Path:
    """Return the program made from `NAME.c`, compiling it when its source is newer.

    Raises:
        NotRunningError: there is no compiler, or it does not take the source.
    """
    source, program = HERE / f"{name}.c", cache_folder() / name
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return program
    command = [tool("cc", "build-essential"), *_FLAGS, "-o", str(program), str(source)]
    compiled = subprocess.run(command, check=False, capture_output=True, text=True)
    if compiled.returncode:
        raise NotRunningError(f"{name}.c does not compile: {compiled.stderr[:500]}")
    return program
