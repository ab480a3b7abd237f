"""Bytes to a listener as they are given, and what comes back read by a strict reader that shares no code with it."""

import asyncio
import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9]) [\x20-\x7e]*")
_FIELD_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ((?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?)")


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; the names of its fields are in lower case, each field as often as it stood there."""

    status: int
    fields: tuple[tuple[str, str], ...]
    body: bytes

    def field(self, name: str) -> str | None:
        """Return the one value of a field; None without it."""
        values = [value for known, value in self.fields if known == name]
        assert len(values) <= 1, f"{name} stands there {len(values)} times"
        return values[0] if values else None

    @property
    def reason(self) -> str | None:
        return self.field("x-llmshed-reason")

    def json(self) -> Any:
        return orjson.loads(self.body)


async def talk(port: int, *parts: bytes, seconds: float = 10.0) -> bytes:
    """Send the parts, each as a segment of its own, and return all that comes until the listener closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(seconds):
            reading = asyncio.ensure_future(read_out(reader))
            with contextlib.suppress(ConnectionError):
                for part in parts:
                    if reading.done():
                        break
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(0)  # two turns of the loop: the listener reads, its task runs
                    await asyncio.sleep(0)
            return await reading
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def read_out(reader: asyncio.StreamReader) -> bytes:
    """Return all bytes until the connection ends, be it by a reset, which only means that something was left unread."""
    parts: list[bytes] = []
    with contextlib.suppress(ConnectionError):
        while part := await reader.read(65_536):
            parts.append(part)
    return b"".join(parts)


def answers(raw: bytes, methods: Iterable[str] = ()) -> list[Answer]:
    """Return the answers that a connection carried to its end; of `methods`, those that were sent, HEAD matters.

    Anything that no strict reader takes, such as a bare line feed or a control character, fails the test.
    """
    asked = iter(methods)
    found: list[Answer] = []
    while raw:
        head, ended, raw = raw.partition(b"\r\n\r\n")
        assert ended, f"the connection ends inside a head: {head[-200:]!r}"
        first, *lines = head.split(b"\r\n")
        status_line = _STATUS_LINE.fullmatch(first)
        assert status_line is not None, f"no status line: {first[:200]!r}"
        status = int(status_line[1])
        answer = Answer(status, tuple(map(_field, lines)), b"")
        if status >= 200 and next(asked, "GET") != "HEAD" and status not in {204, 304}:
            body, raw = _body(answer, raw)
            answer = Answer(status, answer.fields, body)
        found.append(answer)
    return found


def _field(line: bytes) -> tuple[str, str]:
    found = _FIELD_LINE.fullmatch(line)
    assert found is not None, f"no field: {line[:200]!r}"
    return found[1].decode().lower(), found[2].decode()


def _body(answer: Answer, raw: bytes) -> tuple[bytes, bytes]:
    """Return the body and what follows it."""
    length, coding = answer.field("content-length"), answer.field("transfer-encoding")
    assert length is None or coding is None, "a length and a coding"
    if length is not None:
        size = int(length)
        assert len(raw) >= size, f"{size - len(raw)} bytes of the body are missing"
        return raw[:size], raw[size:]
    assert coding in {None, "chunked"}
    return _chunks(raw) if coding else (raw, b"")


def _chunks(raw: bytes) -> tuple[bytes, bytes]:
    parts: list[bytes] = []
    while True:
        size_line, ended, raw = raw.partition(b"\r\n")
        assert ended, "the connection ends inside a chunk"
        assert re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size_line), f"no chunk size: {size_line[:50]!r}"
        size = int(size_line, 16)
        assert raw[size : size + 2] == b"\r\n", "a chunk is longer or shorter than told"
        if size == 0:
            return b"".join(parts), raw[2:]
        parts.append(raw[:size])
        raw = raw[size + 2 :]
