"""The real curl, and the heads that it shows of TGI's answers."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

import orjson

CURL = shutil.which("curl")
CORS = {
    "access-control-allow-origin": "*",
    "vary": "origin, access-control-request-method, access-control-request-headers",
    "date": "masked",
}
JSON = {"content-type": "application/json", **CORS}
PLAIN = {"content-type": "text/plain; charset=utf-8", **CORS}


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer as curl wrote it: its status line, its head with names in lower case, its body."""

    line: str
    head: dict[str, str]
    body: bytes

    @property
    def masked(self) -> bytes:
        return re.sub(rb'"created":\d{10},', b'"created":0,', self.body)


def curl(url: str, *options: str, data: bytes | Any | None = None) -> Raw:
    command = [str(CURL), "-sS", "-i", "--max-time", "30", "-H", "Expect:", url, *options]
    if data is not None:
        command += ["-H", "content-type: application/json", "--data-binary", "@-"]
    given = data if data is None or isinstance(data, bytes) else orjson.dumps(data)
    ran = subprocess.run(command, input=given, capture_output=True, check=True)
    top, _, body = ran.stdout.partition(b"\r\n\r\n")
    line, *fields = top.decode().split("\r\n")
    pairs = [field.split(": ", 1) for field in fields]
    names = [name.lower() for name, _ in pairs]
    assert len(set(names)) == len(names)
    return Raw(line, {name.lower(): _masked(name.lower(), value) for name, value in pairs}, body)


def _masked(name: str, value: str) -> str:
    if name == "date":
        assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", value)
        return "masked"
    if name == "x-compute-time":
        assert re.fullmatch(r"\d+(\.\d+)?", value)
        return "masked"
    if name.startswith("x-") and name.endswith(("-time", "-per-token")):
        assert re.fullmatch(r"\d+", value)
        return "masked"
    return value


def work(characters: int, prompt: int, completion: int, body: bytes) -> dict[str, str]:
    """Return the head of a whole answer."""
    times = ("compute-time", "total-time", "validation-time", "queue-time", "inference-time", "time-per-token")
    return {
        **JSON,
        "content-length": str(len(body)),
        "x-compute-type": "gpu+optimized",
        "x-compute-characters": str(characters),
        "x-prompt-tokens": str(prompt),
        "x-generated-tokens": str(completion),
        **{f"x-{name}": "masked" for name in times},
    }


def streamed(characters: int) -> dict[str, str]:
    """Return the head of a stream."""
    return {
        **CORS,
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "transfer-encoding": "chunked",
        "x-compute-type": "gpu+optimized",
        "x-compute-characters": str(characters),
        "x-accel-buffering": "no",
    }
