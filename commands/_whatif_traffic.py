"""The traffic of `llmshed whatif`: a file that is passed over once for each run, packed or not."""

import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from gzip import GzipFile
from itertools import islice, takewhile
from pathlib import Path
from random import Random
from typing import IO, TYPE_CHECKING, BinaryIO

from llmshed.errors import TraceError

from ._input import MissingInputError, shown_name
from ._signals import ending_in_order

if TYPE_CHECKING:
    from llmshed.workload.formats import TraceFormat
    from llmshed.workload.logged import LoggedRequest
    from llmshed.workload.request import TracedRequest
    from llmshed.workload.summary import TraceSummary

MOST_KEPT_BYTES = 1 << 32
"""What is kept on disk of standard input or a pipe, which can be read only once."""
_CHUNK_BYTES = 1 << 18
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Part:
    """How much of a trace is taken, from its beginning; None for all of it.

    Args:
        requests: at most so many requests.
        seconds: those that arrive before this.
        rate_per_second: rate of traces that hold lengths and no arrivals, and of any that comes at other times.
        retimed: whether the requests will come at other times than the trace says.
    """

    requests: int | None = None
    seconds: float | None = None
    rate_per_second: float | None = None
    retimed: bool = False


@dataclass(frozen=True, slots=True)
class Log:
    """What a trace is besides that tells what became of its requests.

    Args:
        tries: begins a passage over every try, with what became of it; beyond the part that is taken too.
        whole: whether all of it is taken, so that what comes after the last new request are its retries.
        drawn: begins a passage over the requests with another draw of what the log lacks; 0 is the traffic's own.
    """

    tries: "Callable[[], Iterator[LoggedRequest]]"
    whole: bool
    drawn: "Callable[[int], Iterator[TracedRequest]]"


@dataclass(frozen=True, slots=True)
class Traffic:
    """A trace that can be passed over again and again, each time the same.

    Args:
        name: the file as it was named.
        format: what kind of trace it is.
        requests: begins a passage.
        log: the same as a decision log; None where the trace is none.
        summary: what it is made of.
        skipped: rows that gave no request, by why.
    """

    name: str
    format: "TraceFormat"
    requests: "Callable[[], Iterator[TracedRequest]]"
    log: Log | None
    summary: "TraceSummary"
    skipped: dict[str, int]


@contextmanager
def opened_traffic(
    name: str, format_name: str | None, part: Part, seed: int, *, fold_retries: bool = False
) -> "Iterator[Traffic]":
    """Give the traffic of a trace, read through once; what cannot be read twice is kept in a temporary file meanwhile.

    Args:
        name: a file, or `-` for standard input.
        format_name: kind of the trace; None to tell it by its first line.
        part: how much of it is taken.
        seed: of what the trace lacks and is drawn.
        fold_retries: whether the retries in a decision log are folded, since a client model makes them anew.

    Raises:
        MissingInputError: the file cannot be read.
        TraceError: it is no trace, or a line of it is broken; the text begins with the name.
    """
    from llmshed.workload.formats import format_named, sniff
    from llmshed.workload.readers.decision_log import read_logged
    from llmshed.workload.readers.reading import Reading
    from llmshed.workload.summary import summarise

    with _rereadable(name) as path:
        contents = _contents(path)
        with _named(name):
            kind = format_named(format_name) if format_name is not None else sniff(contents())
            companion = _companion(Path(name), kind)
            _check_rate(kind, part)

        def passage(reading: Reading) -> "Iterator[TracedRequest]":
            with _named(name):
                yield from _first_part(kind.read(contents(), reading), part)

        def reading(draw: int = 0) -> Reading:
            return Reading(
                Random(f"{seed}/trace/{draw}" if draw else f"{seed}/trace"),  # noqa: S311 - lengths, no secrets
                rate_per_second=part.rate_per_second,
                duration_seconds=part.seconds,
                companion=None if companion is None else _contents(companion)(),
                fold_retries=fold_retries,
            )

        def tries() -> "Iterator[LoggedRequest]":
            with _named(name):
                yield from read_logged(contents())

        first = reading()
        summary = summarise(passage(first))
        whole = part.requests is None and part.seconds is None
        log = Log(tries, whole, lambda draw: passage(reading(draw))) if kind.tells_endings else None
        yield Traffic(name, kind, lambda: passage(reading()), log, summary, dict(first.skipped))


def _first_part(requests: "Iterator[TracedRequest]", part: Part) -> "Iterator[TracedRequest]":
    """Yield the requests of the part; the first of a trace arrives at about 0 and always belongs to it."""
    first = next(requests)
    yield first
    seconds = part.seconds
    soon = requests if seconds is None else takewhile(lambda request: request.at_seconds < seconds, requests)
    yield from islice(soon, None if part.requests is None else part.requests - 1)


@contextmanager
def _rereadable(name: str) -> Iterator[Path]:
    """Give a regular file with the trace: the one that was named, or a copy of what can be read only once."""
    with _open(name) as source:
        if name != "-" and stat.S_ISREG(Path(name).stat().st_mode):
            yield Path(name)
            return
        with ending_in_order(), tempfile.NamedTemporaryFile(prefix="llmshed-trace-") as kept:
            kept_bytes = 0
            while chunk := source.read(_CHUNK_BYTES):
                kept_bytes += len(chunk)
                if kept_bytes > MOST_KEPT_BYTES:
                    raise TraceError(
                        f"{shown_name(name)}: more than {MOST_KEPT_BYTES:,} bytes of a stream; name a file"
                    )
                kept.write(chunk)
            kept.flush()
            yield Path(kept.name)


@contextmanager
def _open(name: str) -> "Iterator[BinaryIO | IO[bytes]]":
    if name == "-":
        if sys.stdin is None:
            raise MissingInputError("standard input: it is closed")
        yield sys.stdin.buffer
        return
    if not name:
        raise MissingInputError("'': the name of a trace is needed, or - for standard input")
    try:
        source = Path(name).open("rb")  # noqa: SIM115 - closed below; only opening may fail with this error
    except (OSError, ValueError) as error:  # a null byte in the name is the latter
        reason = error.strerror if isinstance(error, OSError) else error
        raise MissingInputError(f"{name!r}: {reason}" if "\0" in name else f"{name}: {reason}") from None
    with source:
        yield source


def unpacked_passages(name: str) -> Callable[[], Iterator[bytes]]:
    """Return what begins a passage over the bytes of a regular file, unpacked.

    Raises:
        MissingInputError: there is no such file, or it can be read only once.
    """
    with _open(name):
        if not stat.S_ISREG(Path(name).stat().st_mode):
            raise MissingInputError(f"{name}: it is read twice, so a regular file is needed")
    return _contents(Path(name))


def _contents(path: Path) -> Callable[[], Iterator[bytes]]:
    """Return what begins a passage over a file: always over what it holds now, as the log of a gateway still grows."""
    held_bytes = path.stat().st_size
    return lambda: _chunks(path, held_bytes)


def _chunks(path: Path, held_bytes: int) -> Iterator[bytes]:
    """Yield the first bytes of a file; all of it, unpacked, if it is packed by gzip, whatever its name."""
    with path.open("rb") as source:
        packed = source.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        source.seek(0)
        if not packed:
            left_bytes = held_bytes
            while chunk := source.read(min(_CHUNK_BYTES, left_bytes)):
                yield chunk
                left_bytes -= len(chunk)
            return
        with GzipFile(fileobj=source) as unpacked:
            try:
                yield from iter(lambda: unpacked.read(_CHUNK_BYTES), b"")
            except (EOFError, OSError, zlib.error) as error:
                raise TraceError(f"begins like a gzip file and is not a whole one: {error}") from None


def _check_rate(kind: "TraceFormat", part: Part) -> None:
    """See that a rate is given where one is needed, and nowhere where it would change nothing.

    Raises:
        TraceError: it is not.
    """
    if kind.needs_rate and part.rate_per_second is None:
        raise TraceError(f"a trace of the format {kind.name} tells lengths and no rate: give one with --rate")
    if not kind.needs_rate and not part.retimed and part.rate_per_second is not None:
        raise TraceError(
            f"a trace of the format {kind.name} has a rate of its own: --scale changes it; --rate is for --arrivals"
            " constant, poisson or gamma:CV"
        )


def _companion(path: Path, kind: "TraceFormat") -> Path | None:
    """Return the second file of a trace of two.

    Raises:
        TraceError: it is not where it belongs.
    """
    if kind.companion is None:
        return None
    own, other = kind.companion
    bare = path.name.removesuffix(".gz")
    if not bare.endswith(own):
        raise TraceError(f"a trace of the format {kind.name} is two files, *{own} and *{other}; name the first")
    beside = path.with_name(bare.removesuffix(own) + other)
    found = next((one for one in (beside, beside.with_name(f"{beside.name}.gz")) if one.is_file()), None)
    if found is None:
        raise TraceError(f"the second file of the trace, {beside.name} or {beside.name}.gz, is not beside it")
    return found


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Put the name of the trace before what is wrong with it."""
    try:
        yield
    except TraceError as error:
        raise TraceError(f"{shown_name(name)}: {error}") from None
