"""Environments of their own for proxies from PyPI, made once and kept: none of them is a dependency of llmshed."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dataplane.building import cache_folder
from dataplane.processes import NotRunningError

_INSTALL_SECONDS = 600.0


def environment(name: str, requirements: Sequence[str]) -> Path:
    """Return the folder of programs of an environment that holds the requirements.

    Raises:
        NotRunningError: they cannot be installed; the text is pip's last line.
    """
    folder = cache_folder() / name
    mark = folder / "requirements.txt"
    wanted = "\n".join(requirements) + "\n"
    if mark.is_file() and mark.read_text("utf-8") == wanted:
        return folder / "bin"
    shutil.rmtree(folder, ignore_errors=True)
    _run(name, [sys.executable, "-m", "venv", str(folder)])
    _run(name, [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *requirements])
    mark.write_text(wanted, encoding="utf-8")
    return folder / "bin"


def _run(name: str, command: Sequence[str]) -> None:
    try:
        ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        raise NotRunningError(f"{name} was not installed within {_INSTALL_SECONDS:.0f} s") from None
    if ran.returncode:
        lines = [line for line in ran.stderr.split("\n") if line.startswith("ERROR")] or ran.stderr.strip().split("\n")
        raise NotRunningError(f"{name} cannot be installed: {lines[-1][:300]}")
