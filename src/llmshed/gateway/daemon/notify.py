"""What systemd is told: ready, reloading, stopping, status and the watchdog's beat (sd_notify(3))."""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress


class Notifier:
    """Sends datagrams to `$NOTIFY_SOCKET`; without one, every call does nothing.

    A lost datagram is not worth an error: systemd's own time-outs notice.
    """

    def __init__(self, address: str | None, watchdog_seconds: float | None = None) -> None:
        """Take the socket's address (`/path` or `@abstract`) and the interval that the watchdog expects."""
        self._address = f"\0{address[1:]}" if address is not None and address.startswith("@") else address
        self.watchdog_seconds = watchdog_seconds if address is not None else None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Notifier":
        """Read `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`; values that systemd would not send are ignored."""
        address = environment.get("NOTIFY_SOCKET", "")
        interval = environment.get("WATCHDOG_USEC", "")
        watched = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        seconds = int(interval) / 1_000_000 if watched and interval.isascii() and interval.isdigit() else None
        return cls(address if address[:1] in {"/", "@"} else None, seconds or None)

    def ready(self, status: str) -> None:
        """Tell that the tokenizers are loaded and a replica is up."""
        self._send(READY="1", STATUS=status)

    def reloading(self, monotonic_seconds: float) -> None:
        """Tell that a reload began; `ready` ends it. By the time stamp systemd pairs it with its own request."""
        self._send(RELOADING="1", MONOTONIC_USEC=str(int(monotonic_seconds * 1_000_000)))

    def stopping(self, status: str) -> None:
        """Tell that the daemon drains."""
        self._send(STOPPING="1", STATUS=status)

    def extend_timeout(self, seconds: float) -> None:
        """Ask for more time before the stop time-out strikes, while streams still run."""
        self._send(EXTEND_TIMEOUT_USEC=str(int(seconds * 1_000_000)))

    def status(self, text: str) -> None:
        """Show one line in `systemctl status`."""
        self._send(STATUS=text)

    def beat(self) -> None:
        """Feed the watchdog; called from the event loop itself, so that a stuck loop is restarted."""
        self._send(WATCHDOG="1")

    def _send(self, **fields: str) -> None:
        if self._address is None:
            return
        text = "\n".join(f"{name}={' '.join(value.split())}" for name, value in fields.items())
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)  # noqa: FBT003 - socket's own positional parameter
            sender.sendto(text.encode(), self._address)
