"""Bytes of a connection to one answer of a replica: aiohttp's parser, held to one reading of where the answer ends."""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from aiohttp import HttpVersion10, HttpVersion11
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpResponseParser, RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader

from llmshed.gateway.relay.framing import end_to_end, framing_fault
from llmshed.gateway.relay.words import CUT_SHORT, NOT_HTTP

MAX_HEAD_BYTES = 64 * 1024
"""Most bytes before the end of the headers, interim answers included; the parser takes 128 lines of 8,190 bytes."""
_READ_BYTES = 256 * 1024
"""The parser's own mark for reading on, which nobody heeds: what it has read is taken from it after each call."""
_SPOKEN_VERSIONS = frozenset({HttpVersion10, HttpVersion11})


class AnswerHead(NamedTuple):
    """Status and end-to-end headers of an answer."""

    status: int
    headers: Mapping[str, str]


class AnswerParser:
    """Reads one answer; a connection makes a new one for each, since trailers of one must not reach the next.

    `head` is None until the headers are complete, interim answers (1xx) left out. `over` is True when nothing more is
    to be read: at the end of the body, or at the `fault` that makes it useless, in words without a byte of the answer.
    `reusable` says after a good end whether another answer may come on the same connection.
    """

    __slots__ = ("_http", "_payload", "_unfinished_bytes", "fault", "head", "over", "reusable")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin before the first byte."""
        self._http = HttpResponseParser(_Unpaused(loop), loop, _READ_BYTES, read_until_eof=True, auto_decompress=False)
        self._payload: StreamReader | None = None
        self._unfinished_bytes = 0
        self.head: AnswerHead | None = None
        self.fault: str | None = None
        self.over = False
        self.reusable = False

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes and return what they hold of the body; what precedes a fault is returned too."""
        try:
            messages, upgraded, _ = self._http.feed_data(data)
        except HttpProcessingError:
            self._fail(NOT_HTTP if self.head is None else CUT_SHORT)
        else:
            if messages or upgraded:
                self._begin(messages, upgraded=upgraded)
        payload = self._payload
        if payload is None:
            self._unfinished_bytes += len(data)
            if self._unfinished_bytes > MAX_HEAD_BYTES:
                self._fail(NOT_HTTP)
            return b""
        piece = payload.read_nowait()
        if payload.is_eof():
            self.over = True
        return piece

    def end(self) -> None:
        """Note that the replica closed the connection in order, which is the end of a body without a length."""
        if self._payload is None:
            self._fail(NOT_HTTP)
            return
        try:
            self._http.feed_eof()
        except HttpProcessingError:
            self._fail(CUT_SHORT)
        self.over = True
        self.reusable = False

    def _begin(self, messages: list[tuple[RawResponseMessage, StreamReader]], *, upgraded: bool) -> None:
        for message, payload in messages:
            if self.head is not None:  # a second answer to one request
                self.reusable = False
            elif upgraded or message.code < 100 or message.version not in _SPOKEN_VERSIONS:
                self._fail(NOT_HTTP)
            elif (fault := framing_fault(message.headers)) is not None:
                self._fail(f"its answer {fault}")
            elif message.code >= 200:
                self.head = AnswerHead(message.code, end_to_end(message.headers))
                self.reusable = not message.should_close
                self._payload = payload

    def _fail(self, fault: str) -> None:
        if not self.over:
            self.fault = fault
        self.over = True
        self.reusable = False


class _Unpaused(BaseProtocol):
    """Where the parser's buffer would stop a transport: it has none, because the buffer is emptied after each call."""

    def pause_reading(self) -> None:
        """Read on."""

    def resume_reading(self, resume_parser: bool = True) -> None:  # noqa: FBT001, FBT002 - aiohttp's signature
        """Have read on."""
