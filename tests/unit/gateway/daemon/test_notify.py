import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmshed.gateway.daemon.notify import Notifier


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(5)
        yield receiver


def test_each_notice_is_one_datagram_of_fields(systemd: socket.socket, tmp_path: Path) -> None:
    notifier = Notifier.from_environment({"NOTIFY_SOCKET": str(tmp_path / "notify")})
    notifier.ready("1 replica up")
    assert systemd.recv(4096) == b"READY=1\nSTATUS=1 replica up"
    notifier.reloading(12.5)
    assert systemd.recv(4096) == b"RELOADING=1\nMONOTONIC_USEC=12500000"
    notifier.stopping("draining")
    assert systemd.recv(4096) == b"STOPPING=1\nSTATUS=draining"
    notifier.extend_timeout(2)
    assert systemd.recv(4096) == b"EXTEND_TIMEOUT_USEC=2000000"
    notifier.beat()
    assert systemd.recv(4096) == b"WATCHDOG=1"


def test_a_status_cannot_smuggle_a_second_field(systemd: socket.socket, tmp_path: Path) -> None:
    Notifier(str(tmp_path / "notify")).status("fine\nERRNO=1")
    assert systemd.recv(4096) == b"STATUS=fine ERRNO=1"


def test_abstract_sockets_are_spoken_to() -> None:
    name = f"llmshed-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(f"\0{name}")
        receiver.settimeout(5)
        Notifier.from_environment({"NOTIFY_SOCKET": f"@{name}"}).beat()
        assert receiver.recv(64) == b"WATCHDOG=1"


def test_without_a_socket_or_a_listener_nothing_happens(tmp_path: Path) -> None:
    Notifier.from_environment({}).ready("up")
    Notifier(str(tmp_path / "nobody")).ready("up")


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({"WATCHDOG_USEC": "20000000"}, 20.0),
        ({"WATCHDOG_USEC": "20000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "20000000", "WATCHDOG_PID": str(os.getpid())}, 20.0),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({}, None),
    ],
)
def test_the_watchdog_interval_is_read_for_this_process_only(
    environment: dict[str, str], seconds: float | None
) -> None:
    assert Notifier.from_environment({"NOTIFY_SOCKET": "/run/n", **environment}).watchdog_seconds == seconds
