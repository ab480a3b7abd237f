"""What went wrong with a connection, in words that may reach a client: no address of a replica, no byte of its own."""

import os
import socket

CLOSED = "it closed the connection"
NOT_HTTP = "its answer is not strict HTTP"
CUT_SHORT = "the body does not end as its framing says"
NO_NAME = "its name cannot be resolved"
TOO_LATE = "no connection came about in time"


def told(error: BaseException) -> str:
    """Name an error of the system; the text that asyncio gives itself holds the address."""
    if isinstance(error, socket.gaierror):
        return NO_NAME
    if isinstance(error, TimeoutError):
        return TOO_LATE
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return "the connection failed"
