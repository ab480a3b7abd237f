"""A host of its own at the end of a cable that can be cut without a word: a network namespace and a veth pair.

Needs root and Linux; a test that cannot have it skips.
"""

import ctypes
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

HERE, THERE = "198.18.77.1", "198.18.77.2"
"""Addresses of the range that is kept for tests (RFC 2544)."""
_numbers = count()  # a host goes some time after its last socket, so the next one has another name
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of sched.h


@dataclass(frozen=True, slots=True)
class OtherHost:
    """The far end; sockets of it may be used from anywhere."""

    name: str
    device: str

    def new_socket(self) -> socket.socket:
        """Make a TCP socket of that host: it belongs to the namespace in which it was made."""
        with ThreadPoolExecutor(1) as thread:  # whose namespace it changes; it ends with this call
            made: socket.socket = thread.submit(self._make).result()
        made.settimeout(0)
        return made

    def cut(self) -> None:
        """Take the far end down: from now on every packet is lost, and nobody is told."""
        _ip("-n", self.name, "link", "set", self.device, "down")

    def _make(self) -> socket.socket:
        with Path(f"/run/netns/{self.name}").open("rb") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _NEW_NETWORK) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        return socket.socket()


@contextmanager
def other_host() -> Iterator[OtherHost]:
    """Make a host and a cable to it; both are gone afterwards."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("a network namespace needs root and the program `ip` (Debian: iproute2)")
    mark = f"{os.getpid() % 100_000}x{next(_numbers)}"
    host, near = OtherHost(f"llmshed-{mark}", f"lf{mark}"), f"ln{mark}"
    with ExitStack() as undoing:
        try:
            _ip("netns", "add", host.name)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespace can be made here: {error.stderr.decode().strip()}")
        undoing.callback(_ip, "netns", "delete", host.name)
        _ip("link", "add", near, "type", "veth", "peer", "name", host.device, "netns", host.name)
        undoing.callback(_ip, "link", "delete", near)  # and with it its other end
        _ip("address", "add", f"{HERE}/30", "dev", near)
        _ip("link", "set", near, "up")
        _ip("-n", host.name, "address", "add", f"{THERE}/30", "dev", host.device)
        _ip("-n", host.name, "link", "set", host.device, "up")
        yield host


def _ip(*arguments: str) -> None:
    subprocess.run(("ip", *arguments), check=True, capture_output=True)
