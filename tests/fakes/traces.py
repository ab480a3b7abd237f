"""Traces for tests: the reference files in pieces, and a reading with a seed."""

import gzip
import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from llmshed.workload.readers.reading import Reading
from llmshed.workload.request import TracedRequest

Reader = Callable[[Iterable[bytes], Reading], Iterator[TracedRequest]]


def seeded(seed: int = 1) -> random.Random:
    return random.Random(seed)  # noqa: S311 - one seed, one draw


def unpacked(path: Path, piece_bytes: int = 65_536) -> Iterator[bytes]:
    with gzip.open(path) as file:
        yield from iter(partial(file.read, piece_bytes), b"")


def read_file(reader: Reader, path: Path) -> list[TracedRequest]:
    return list(reader(unpacked(path), Reading(seeded())))


def read_text(reader: Reader, text: str | bytes, reading: Reading | None = None) -> list[TracedRequest]:
    raw = text.encode() if isinstance(text, str) else text
    return list(reader([raw], reading or Reading(seeded())))
