"""Bytes to numbered lines of text, within bounds."""

from collections.abc import Iterable, Iterator

from llmshed.errors import TraceError

LONGEST_LINE_BYTES = 1 << 20
"""The longest lines known, prefix ids of a prompt of a million tokens, take 20 KB."""

LONGEST_WHOLE_BYTES = 1 << 26
LONGEST_BEGINNING_BYTES = 1 << 16

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def numbered_lines(chunks: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Yield each line with its number from 1, without its end; blank lines are passed over.

    Args:
        chunks: the bytes in pieces of any size, so that an endless line is never held whole. Lines end in LF or CRLF;
            a UTF-8 byte order mark is dropped.

    Raises:
        TraceError: a line is longer than `LONGEST_LINE_BYTES`, holds a NUL byte or is not UTF-8.
    """
    for number, line in enumerate(_lines(chunks), start=1):
        marked = number == 1 and line.startswith(_BYTE_ORDER_MARK)
        text = _text(line[len(_BYTE_ORDER_MARK) :] if marked else line, number)
        if text and not text.isspace():
            yield number, text


def whole_text(chunks: Iterable[bytes]) -> str:
    """Return a file that is no list of requests, whole.

    Raises:
        TraceError: it is longer than `LONGEST_WHOLE_BYTES`, holds a NUL byte or is not UTF-8.
    """
    taken = bytearray()
    for chunk in chunks:
        taken += chunk
        if len(taken) > LONGEST_WHOLE_BYTES:
            raise TraceError(f"longer than {LONGEST_WHOLE_BYTES} bytes; ask for fewer series or a longer step")
    return _text(bytes(taken).removeprefix(_BYTE_ORDER_MARK), None)


def beginning(chunks: Iterable[bytes]) -> str:
    """Return the first line that is not blank, at most `LONGEST_BEGINNING_BYTES` of it; empty when there is none.

    What is not UTF-8 is replaced, since this only serves to recognise a format. No more chunks are taken than needed.
    """
    taken = b""
    for chunk in chunks:
        taken = (taken + chunk).removeprefix(_BYTE_ORDER_MARK).lstrip()
        if b"\n" in taken or len(taken) >= LONGEST_BEGINNING_BYTES:
            break
    return taken.split(b"\n", 1)[0][:LONGEST_BEGINNING_BYTES].decode("utf-8", "replace").rstrip()


def shown(found: object) -> str:
    """Return what was found, quoted and short enough for one line of an error."""
    quoted = repr(found)
    return quoted if len(quoted) <= 60 else f"{quoted[:56]}...{quoted[-1]}"


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    started = bytearray()
    number = 1
    for chunk in chunks:
        pieces = chunk.split(b"\n")
        for piece in pieces[:-1]:
            started += piece
            _bound(started, number)
            yield bytes(started)
            started.clear()
            number += 1
        started += pieces[-1]
        _bound(started, number)
    if started:
        yield bytes(started)


def _bound(line: bytearray, number: int) -> None:
    if len(line) > LONGEST_LINE_BYTES:
        raise TraceError(f"longer than {LONGEST_LINE_BYTES} bytes; a trace has one request a line", number)


def _text(line: bytes, number: int | None) -> str:
    if b"\0" in line:
        raise TraceError("holds a NUL byte; a trace is text in UTF-8, unpacked", number)
    try:
        return line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise TraceError(
            f"byte {error.start + 1} is not UTF-8 ({shown(line[:20])}); a trace is text in UTF-8, unpacked", number
        ) from None
