"""A real llama.cpp on the CPU, with a tiny model: batching, slots, streams and metrics are its own."""

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fakes.clients import Environment
from fakes.engine import free_port

LLAMA = Environment("llama", ("xllamacpp==2026.10.11549", "gguf==0.19.0", "tokenizers==0.23.2"))
READY_SECONDS = 60
SCRIPT = Path(__file__).parent / "llama_run.py"


@dataclass(frozen=True, slots=True)
class RealEngine:
    """A server that runs.

    Args:
        url: its address.
        folder: holds its model's tokenizer.
        process: the server; killing it is its death.
    """

    url: str
    folder: Path
    process: "subprocess.Popen[bytes]"


@contextmanager
def llama(
    folder: Path, *, slots: int = 4, context_tokens: int = 1024, width: int = 64, layers: int = 2
) -> Iterator[RealEngine]:
    """Run a server whose slots hold so many tokens each; skips the test where it cannot be installed.

    Args:
        folder: empty, for the model.
        slots: sequences at once.
        context_tokens: of each.
        width: of the model, a multiple of 64; with `layers` it says how long a step takes.
        layers: of the model.
    """
    python = LLAMA.made() / "bin" / "python"
    port = free_port()
    numbers = (port, slots, context_tokens, width, layers)
    command: list[str | Path] = [python, SCRIPT, folder, *map(str, numbers)]
    with (folder / "llama.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _until_ready(url, process, folder / "llama.log")
            yield RealEngine(url, folder, process)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _until_ready(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(READY_SECONDS * 10):
        if process.poll() is not None:
            pytest.skip(f"llama.cpp did not start: {log.read_text(errors='replace')[-300:]}")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:  # noqa: S310 - the address was made here
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"llama.cpp was not ready in {READY_SECONDS} s")
