"""`llmshed simulate` in a process of its own, for clients that block, and what they compare its answers with."""

import os
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from fakes.programs import LLMSHED

END_SECONDS = 30.0
QUICK = ("--output-mean", "ceiling", "--step-seconds", "0.001", "--decode-sequence-seconds", "0")
"""Options of a replica whose answers run to their ceiling, in a millisecond a token."""


@contextmanager
def simulated_process(*options: str) -> Iterator[str]:
    """Run the program on a free port and give its URL; afterwards it is told to stop twice, which ends it at once."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LLMSHED_")}
    command = [str(LLMSHED), "simulate", "--port", "0", "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=clean) as process:
        assert process.stdout is not None
        try:
            yield orjson.loads(b"".join(_until_closed(process.stdout)))["url"]
        finally:
            process.terminate()
            process.send_signal(2)
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def occupied(url: str) -> Iterator[None]:
    """Have a replica answer somebody else meanwhile: a stream that is not read on from its first line."""
    body = orjson.dumps({"inputs": "a", "parameters": {"max_new_tokens": 400}})
    request = urllib.request.Request(  # noqa: S310 - made by the caller
        f"{url}/generate_stream", body, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as other:  # noqa: S310 - as above
        other.readline()
        yield


def _until_closed(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Give the lines up to the brace that ends an object."""
    for line in lines:
        yield line
        if line == b"}\n":
            return


def usage(prompt: int, completion: int) -> dict[str, int]:
    """Return OpenAI's usage."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def head(kind: str, model: str = "llmshed/simulated") -> dict[str, Any]:
    """Return the fields with which every OpenAI answer of TGI 3.3.5 begins, its second masked."""
    return {"object": kind, "id": "", "created": 0, "model": model, "system_fingerprint": "3.3.5-native"}


def framed(events: Iterable[Any]) -> bytes:
    """Write events as axum does."""
    lines = (event.encode() if isinstance(event, str) else orjson.dumps(event) for event in events)
    return b"".join(b"data: " + line + b"\n\n" for line in lines)
