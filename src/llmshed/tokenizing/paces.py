"""How long a tokenizer takes for strings that are known to be dear, in a process that is killed when it takes too long.

Processor time is measured, and of each string in turn with prose, since a busy machine makes both dearer for a while:
caches are lost to others, and two threads share a core. The child tells each string before it begins with it: when it
is killed, the last one told is the one that was too much.
"""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import orjson
from tokenizers import Tokenizer

from llmshed.errors import TokenizerError
from llmshed.tokenizing.bombs import BOMBS, bomb, prose

PROSE: Final = "prose"
MOST_SECONDS: Final = 5.0
"""Processor time for one string, after which the rest is not tried."""
_TRIES: Final = 3
_MOST_TRIES: Final = 12
"""What disturbs a count only adds to it, so a string that looks dear is tried again before it is called so."""
_LOOKS_DEAR_RATIO: Final = 2.5
_SURE_SECONDS: Final = 0.5
"""Once a string has taken so much, it is not counted again unless it looks dear."""
_PROCESS_SECONDS: Final = 600.0
_MOST_PROSE_BYTES: Final = 131_072
"""Prose takes the same for each byte of a longer text."""


class Pace(NamedTuple):
    """What one string took; all but its name and size are None for the one at which the child ended.

    Args:
        name: of its unit in `bombs`, or `prose`.
        size_bytes: its length in UTF-8.
        tokens: its count, without special tokens.
        seconds: processor time of counting it once, the least of some tries: what disturbs a count only adds to it.
        prose_seconds: the same of as many bytes of prose, counted in turn with it.
        peak_bytes: by how much the process has grown since it began, at its largest.
    """

    name: str
    size_bytes: int
    tokens: int | None = None
    seconds: float | None = None
    prose_seconds: float | None = None
    peak_bytes: int | None = None


def paces(tokenizer: Tokenizer, sizes_bytes: Sequence[int], names: Sequence[str] = tuple(BOMBS)) -> list[Pace]:
    """Count prose and the bombs of each size, smallest first; blocks until all are done or one was too much.

    Raises:
        TokenizerError: the process could not work at all.
    """
    asked = orjson.dumps({"tokenizer": tokenizer.to_str(), "sizes": sorted(sizes_bytes), "names": list(names)})
    command = (sys.executable, "-m", __name__)
    # The library's own threads look for work while they have none, which would be measured too.
    environment = os.environ | {"TOKENIZERS_PARALLELISM": "false"}
    try:
        ran = subprocess.run(  # noqa: S603 - our own interpreter and module, without a shell
            command, input=asked, env=environment, capture_output=True, timeout=_PROCESS_SECONDS, check=False
        )
        code, told = ran.returncode, ran.stdout
    except subprocess.TimeoutExpired as expired:
        code, told = -signal.SIGKILL, expired.stdout or b""
    found = [Pace(**orjson.loads(line)) for line in told.splitlines()]
    if not found:
        raise TokenizerError(f"the tokenizer could not be tried: its process ended with {code}")
    # Each string is told twice, before and after, but for the one that ended the child.
    done = {(pace.name, pace.size_bytes): pace for pace in found}
    return list(done.values())


def _tell(asked: bytes) -> None:
    wanted = orjson.loads(asked)
    tokenizer = Tokenizer.from_str(wanted["tokenizer"])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    began_bytes = _peak_bytes()
    for name, text in _texts(wanted["sizes"], wanted["names"]):
        begun = Pace(name, len(text.encode()))
        _write(begun)
        tokens, seconds, prose_seconds = _counted(tokenizer, text, prose(min(begun.size_bytes, _MOST_PROSE_BYTES)))
        grown_bytes = _peak_bytes() - began_bytes
        _write(begun._replace(tokens=tokens, seconds=seconds, prose_seconds=prose_seconds, peak_bytes=grown_bytes))


def _texts(sizes: Sequence[int], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for size in sizes:
        yield PROSE, prose(size)
        for name in names:
            yield name, bomb(name, size)


def _counted(tokenizer: Tokenizer, text: str, plain: str) -> tuple[int, float, float]:
    """Return the tokens of a text, the least time that it took, and that of prose beside it for as many bytes."""
    as_many_bytes = len(text.encode()) / len(plain.encode())
    least = least_prose = MOST_SECONDS
    spent, tokens = 0.0, 0
    for tries in range(1, _MOST_TRIES + 1):
        plain_seconds, _ = _timed(tokenizer, plain)
        seconds, tokens = _timed(tokenizer, text)
        least_prose = min(least_prose, plain_seconds * as_many_bytes)
        least, spent = min(least, seconds), spent + seconds
        enough = tries >= _TRIES or spent > _SURE_SECONDS
        if enough and least <= _LOOKS_DEAR_RATIO * least_prose:
            break
    return tokens, least, least_prose


def _timed(tokenizer: Tokenizer, text: str) -> tuple[float, int]:
    """Return the processor time of one count and its tokens.

    The thread's own clock is read, for one thread does all of it: while a timer of the process runs, Linux moves the
    clock of the process by whole ticks of some milliseconds, in which a short count may vanish.
    """
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    began = time.thread_time()
    (encoding,) = tokenizer.encode_batch_fast([text], add_special_tokens=False)
    taken = time.thread_time() - began
    signal.setitimer(signal.ITIMER_PROF, 0)
    return taken, len(encoding)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _write(pace: Pace) -> None:
    sys.stdout.write(orjson.dumps(pace._asdict()).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _tell(sys.stdin.buffer.read())
