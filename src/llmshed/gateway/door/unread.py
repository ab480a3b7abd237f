"""Clients that leave unread what was written to them.

Bytes that a client does not take are held by the gateway only up to a bound; then writing pauses, and with it the
reading from the replica. A client that takes some of them now and then, however slowly, is waited for. One that takes
none for too long counts as gone, and its connection is cut, so that its seat and its replica come free.
"""

import asyncio
import fcntl
import socket
import struct
import termios
from contextlib import suppress
from typing import Any

from aiohttp import web

UNSENT_BYTES = 32_768
"""Bytes of a connection that the kernel may hold unsent; by itself it would take some megabytes of a fast answer."""
_LOOKS = 8
"""How often, within the time that a client has, it is looked whether any byte was taken."""
_INT = struct.Struct("=i")


class PatientHandler(web.RequestHandler):
    """A connection that ends when its client has taken nothing for `write_stall_seconds`."""

    __slots__ = ("_stall_timer", "_taken_at", "_unread_bytes", "_write_stall_seconds")

    def __init__(self, manager: web.Server, *, write_stall_seconds: float, **settings: Any) -> None:
        """Keep the time that a client has, in seconds."""
        super().__init__(manager, **settings)
        self._write_stall_seconds = write_stall_seconds
        self._stall_timer: asyncio.TimerHandle | None = None
        self._unread_bytes = 0
        self._taken_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, and bound what the kernel holds of it."""
        super().connection_made(transport)
        with suppress(OSError, AttributeError):  # no TCP, or not Linux
            sock = transport.get_extra_info("socket")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)

    def pause_writing(self) -> None:
        """Begin to watch: the client has left so much unread that no more is written."""
        super().pause_writing()
        self._taken_at = self._loop.time()
        self._unread_bytes = self._held_bytes()
        self._look_again()

    def resume_writing(self) -> None:
        """End the watch: there is room again."""
        self._stop_watching()
        super().resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the watch with the connection."""
        self._stop_watching()
        super().connection_lost(exc)

    def _held_bytes(self) -> int:
        """Return how many bytes the client's side has not taken: those held here, and those in our kernel."""
        if self.transport is None:
            return 0
        held: int = self.transport.get_write_buffer_size()
        with suppress(OSError, AttributeError):
            sock = self.transport.get_extra_info("socket")
            (in_kernel,) = _INT.unpack(fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(_INT.size)))
            held += in_kernel
        return held

    def _look_again(self) -> None:
        self._stall_timer = self._loop.call_later(self._write_stall_seconds / _LOOKS, self._look)

    def _look(self) -> None:
        held, now = self._held_bytes(), self._loop.time()
        if held < self._unread_bytes:
            self._taken_at = now
        self._unread_bytes = held
        if now - self._taken_at < self._write_stall_seconds:
            self._look_again()
        elif self.transport is not None:
            self.transport.abort()

    def _stop_watching(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
