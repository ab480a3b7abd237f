"""What clients are told of a connection that failed."""

import errno
import socket

import pytest

from llmshed.gateway.relay.words import told


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            ConnectionRefusedError(errno.ECONNREFUSED, "[Errno 111] Connect call failed ('10.0.0.7', 80)"),
            "connection refused",
        ),
        (OSError(errno.EHOSTUNREACH, "no way to 10.0.0.7"), "no route to host"),
        (socket.gaierror(-2, "Name or service not known"), "its name cannot be resolved"),
        (TimeoutError("10.0.0.7"), "no connection came about in time"),
        (OSError("Multiple exceptions: 10.0.0.7"), "the connection failed"),
    ],
)
def test_no_address_is_among_the_words(error: OSError, words: str) -> None:
    assert told(error) == words
