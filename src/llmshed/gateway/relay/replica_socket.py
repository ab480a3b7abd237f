"""The options of a socket to a replica."""

import socket

_OPTIONS = {"TCP_KEEPIDLE": 8, "TCP_KEEPINTVL": 3, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 17_000}


def notice_vanished_host(sock: socket.socket) -> None:
    """Let the kernel notice a host that vanished without a word within 20 s, in whatever direction it is waited for."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
