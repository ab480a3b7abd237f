"""Clients whose host vanished without a word: a cut cable, a battery that ran out, a forgotten address translation.

A connection on which nothing is under way is probed by the kernel. One on which bytes are under way is not: TCP sends
them again for a quarter of an hour. The kernel's own bound on that (TCP_USER_TIMEOUT) also ends connections whose peer
is there and only does not read, which have a time of their own (`unread`). So it is looked here whether anything is
heard of a peer to whom bytes are under way.
"""

import asyncio
import socket
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress

PROBE_IDLE_SECONDS = 8
PROBE_INTERVAL_SECONDS = 3
PROBES = 3
"""An idle peer that answers none of these probes is gone after 17 s."""
UNHEARD_SECONDS = 15.0
"""A peer that is there was heard more lately than this: it answers probes, or acknowledges what it gets."""
LOOK_SECONDS = 2.0
_LOOKED_AT_ONCE = 256
"""Connections that are looked at in one turn of the loop; each takes some 2 us."""

# Of Linux's struct tcp_info, whose beginning never changes: the segments under way, and the milliseconds since data
# and since an acknowledgement came last.
_TCP_INFO = struct.Struct("=24xI24xII")


def probe_idle(sock: socket.socket) -> None:
    """Let the kernel notice a peer that vanished while nothing is under way to it."""
    for name, value in (
        ("TCP_KEEPIDLE", PROBE_IDLE_SECONDS),
        ("TCP_KEEPINTVL", PROBE_INTERVAL_SECONDS),
        ("TCP_KEEPCNT", PROBES),
    ):
        if hasattr(socket, name):
            with suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def end_vanished(transports: Callable[[], Iterable[asyncio.Transport]]) -> None:
    """Look at the connections for ever, and abort those of whose peer nothing is heard."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        for number, transport in enumerate(list(transports()), 1):
            if has_vanished(transport):
                transport.abort()
            if number % _LOOKED_AT_ONCE == 0:
                await asyncio.sleep(0)


def has_vanished(transport: asyncio.Transport) -> bool:
    """Say whether bytes are under way to a peer that was not heard for too long; only Linux can tell, and of TCP."""
    try:
        info = transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        segments, since_data_ms, since_acknowledgement_ms = _TCP_INFO.unpack(info)
    except (OSError, AttributeError, struct.error):
        return False
    unheard_seconds: float = min(since_data_ms, since_acknowledgement_ms) / 1000
    return bool(segments) and unheard_seconds >= UNHEARD_SECONDS
