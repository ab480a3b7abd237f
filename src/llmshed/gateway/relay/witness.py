"""Proof of what a lost replica has read: how many bytes its kernel acknowledged before the connection ended."""

import asyncio
import socket
import sys

# struct tcp_info of Linux >= 4.1: eight bytes, 24 words of 32 bits, two pacing rates of 64 bits, tcpi_bytes_acked.
_BYTES_ACKED_AT = 8 + 24 * 4 + 2 * 8


class Witness:
    """Knows, when a connection is lost, whether the peer can have read any byte of the present request.

    A replica that closes an idle connection while a request is on its way answers with an orderly end (FIN) that
    acknowledges nothing of it: such a request is safe to send again. A reset proves nothing, because a kernel may hold
    its acknowledgement back for 40 ms while the process already reads.
    """

    __slots__ = ("_acked_before", "left_unread")

    def __init__(self) -> None:
        """Know nothing yet."""
        self._acked_before: int | None = None
        self.left_unread = False

    def request_begins(self, transport: asyncio.BaseTransport | None) -> None:
        """Look at the connection before the first byte of a request is written."""
        self.left_unread = False
        self._acked_before = _acked_bytes(transport)

    def connection_lost(self, transport: asyncio.BaseTransport | None, error: BaseException | None) -> None:
        """Look at the connection, which has just ended; `left_unread` has the answer."""
        orderly = error is None or isinstance(error, BrokenPipeError)
        if orderly and self._acked_before is not None:
            self.left_unread = _acked_bytes(transport) == self._acked_before


def _acked_bytes(transport: asyncio.BaseTransport | None) -> int | None:
    """Return how many bytes the peer's kernel has acknowledged on a connection; None where the system cannot tell."""
    if sys.platform != "linux" or transport is None:
        return None
    end = _BYTES_ACKED_AT + 8
    try:
        info: bytes = transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, end)
    except (OSError, AttributeError):
        return None
    return int.from_bytes(info[_BYTES_ACKED_AT:end], sys.byteorder) if len(info) == end else None
