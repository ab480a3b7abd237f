"""Coverage-guided fuzzing of what reads foreign bytes: bodies, event streams, the configuration file.

atheris runs in an environment of its own, which is made once and kept in the user's cache; the gateway and what it
needs come from the environment of the tests. FUZZ_SECONDS sets how long each target runs.
"""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
import pytest

ATHERIS = "atheris==3.0.0"
SECONDS = int(os.environ.get("FUZZ_SECONDS", "600"))
SPARE_SECONDS = 300
SCRIPT = Path(__file__).parents[1] / "fakes" / "fuzz_targets.py"
WORDS = {
    "body": ('"messages"', '"role"', '"content"', '"inputs"', '"parameters"', '"prompt"', '"stream"', "\\u", "1e999"),
    "stream": ("data: ", "\\x0d\\x0a", "\\x0a\\x0a", "[DONE]", '"error"', '"usage"', '"choices"', '"token"'),
    "toml": ("[[pools]]", "[server]", "replicas", '"""', "'''", "listen", " = ", "0x", "inf", "1979-05-27"),
}


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter of an environment that holds atheris and nothing else."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "llmshed-tests"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"{ATHERIS.replace('==', '-')}-{sys.version_info.major}.{sys.version_info.minor}"
    with (cache / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", ATHERIS]
            ran = subprocess.run(pip, check=False, capture_output=True, text=True)
            if ran.returncode != 0:
                pytest.skip(f"{ATHERIS} cannot be installed: {ran.stderr.strip().splitlines()[-1:]}")
            (folder / "complete").touch()
    return folder / "bin" / "python"


def seeds(target: str, data_dir: Path, repository: Path) -> Iterator[bytes]:
    """Return real inputs, from which the fuzzer goes on."""
    match target:
        case "body":
            message = {"role": "user", "content": [{"type": "text", "text": "a"}]}
            tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
            chat = {"messages": [message], "tools": [tool], "tool_choice": "auto", "n": 2, "max_tokens": 5}
            for value in (chat, {"prompt": ["a", "b"], "stop": "x"}, {"inputs": "a", "parameters": {"best_of": 2}}):
                yield orjson.dumps(value)
            for number in range(50):
                yield b"\x00" + bytes((number * place * 37) % 256 for place in range(200))
            for file in (data_dir / "corpora" / "json-parsing").rglob("*.json"):
                yield b'{"a":' + file.read_bytes()[:500] + b"}"
        case "stream":
            token = {"index": 1, "token": {"id": 1, "text": "a", "special": False}, "generated_text": None}
            chunk = {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}], "usage": None}
            for event in (token, chunk, {"error": "x", "error_type": "overloaded"}):
                yield b"\x07data: " + orjson.dumps(event) + b"\r\n\r\ndata: [DONE]\n\n"
        case _:
            yield (repository / "llmshed.toml").read_bytes()
            yield b'[[pools]]\nreplicas = [{ name = "a", url = "http://h:1" }]\n[lanes.bulk]\nqueue_requests = 5\n'


def written(folder: Path, inputs: Iterable[bytes]) -> Path:
    folder.mkdir()
    for number, content in enumerate(inputs):
        (folder / str(number)).write_bytes(content)
    return folder


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + SPARE_SECONDS)
@pytest.mark.parametrize("target", ["body", "stream", "toml"])
def test_no_bytes_make_a_reader_crash_or_lie(
    python: Path, data_dir: Path, repository: Path, tmp_path: Path, target: str
) -> None:
    corpus = written(tmp_path / "corpus", seeds(target, data_dir, repository))
    words = tmp_path / "words"
    words.write_text("".join(f"{json.dumps(word)}\n" if "\\x" not in word else f'"{word}"\n' for word in WORDS[target]))
    options = (f"-max_total_time={SECONDS}", f"-dict={words}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=4096")
    ran = subprocess.run(
        [python, SCRIPT, target, corpus, *options, f"-artifact_prefix={tmp_path}/", "-print_final_stats=1"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(repository / "src"), *filter(None, sys.path)])},
        capture_output=True,
        check=False,
        timeout=SECONDS + SPARE_SECONDS - 10,
    )
    told = ran.stderr.decode(errors="replace")
    print("\n".join(line for line in told.splitlines() if line.startswith("stat::")))  # noqa: T201 - with -s
    assert ran.returncode == 0, told[-5000:]
