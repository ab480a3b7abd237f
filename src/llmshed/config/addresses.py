"""The forms of addresses in settings: where a listener stands, and where a replica is asked."""

import ipaddress
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from llmshed.config.base import ACCEPTED

SIMULATED = "simulated:"
"""The address of a simulated replica inside the gateway's own process."""
MOST_UNIX_PATH_BYTES = 107
"""What `sun_path` of Linux holds, less its end; other systems have a few bytes less and say so when it is bound."""
_LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not bound
"""Addresses that stand for every interface, and where this machine reaches them."""


@dataclass(frozen=True, slots=True)
class Address:
    """A listen setting, parsed; `unix_path` is None for TCP."""

    host: str = ""
    port: int = 0
    unix_path: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read `HOST:PORT`, `[IPV6]:PORT` or `unix:/PATH`.

        Raises:
            ValueError: the text is none of these.
        """
        if text.startswith("unix:"):
            path = text.removeprefix("unix:")
            if not path.startswith("/") or "\0" in path or path.endswith("/"):
                raise ValueError("a unix socket needs the absolute path of a file")
            if len(path.encode("utf-8", "surrogateescape")) > MOST_UNIX_PATH_BYTES:
                raise ValueError(f"the path of a unix socket has at most {MOST_UNIX_PATH_BYTES} bytes")
            return cls(unix_path=path)
        host, _, port = text.rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        host = host[1:-1] if bracketed else host
        if not host:
            raise ValueError("no host; every interface is 0.0.0.0 or [::]")
        if not (port.isascii() and port.isdigit()) or int(port) > 65_535:
            raise ValueError("no port from 0 to 65535")
        if bracketed or not _is_host_name(host):
            try:
                (ipaddress.IPv6Address if bracketed else ipaddress.IPv4Address)(host)
            except ValueError:
                raise ValueError("neither a host name nor an address; IPv6 stands in brackets") from None
        return cls(host, int(port))

    def __str__(self) -> str:
        """Return the address as a setting spells it."""
        if self.unix_path is not None:
            return f"unix:{self.unix_path}"
        return f"{_bracketed(self.host)}:{self.port}"

    def local_url(self, port: int) -> str:
        """Return how clients of this machine reach a TCP listener that is bound here.

        Args:
            port: the port that it got, since a setting may leave it to the system by 0.
        """
        return f"http://{_bracketed(_LOOPBACK_OF.get(self.host, self.host))}:{port}"

    @property
    def loopback(self) -> bool:
        """Say whether only this machine can reach the address; a unix socket is guarded by its file's mode."""
        if self.unix_path is not None or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_host_name(text: str) -> bool:
    labels = text.split(".")
    if labels[-1].isdigit():  # the last label of a name is never a number, so this is meant as an IPv4 address
        return False
    return len(text) <= 253 and all(
        0 < len(label) <= 63 and label.isascii() and label.replace("-", "").replace("_", "").isalnum()
        for label in labels
    )


def _tcp(text: str) -> str:
    if Address.parse(text).unix_path is not None:
        raise ValueError("the data listener is TCP")
    return text


def _any_listener(text: str) -> str:
    Address.parse(text)
    return text


def _replica_url(text: str) -> str:
    """Check a replica's URL and return it without a slash at its end."""
    if text == SIMULATED:
        return text
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("characters that no URL has")
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"}:
        raise ValueError("the scheme is neither http nor https")
    if "@" in parts.netloc:
        raise ValueError("user names and passwords do not belong in a URL")
    if "?" in text or "#" in text or parts.path not in {"", "/"}:
        raise ValueError("nothing may follow the port")
    if not parts.hostname or parts.netloc.endswith(":") or parts.port == 0:  # .port raises ValueError beyond 65535
        raise ValueError("no host, or a port that is none")
    _refuse_link_local(parts.hostname)
    return text.rstrip("/")


def _refuse_link_local(host: str) -> None:
    """Refuse addresses where clouds serve credentials (169.254.0.0/16, fe80::/10)."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        if not _is_host_name(host):
            raise ValueError("the host is neither a name nor an address") from None
        return
    inside = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    if address.is_link_local or (inside is not None and inside.is_link_local):
        raise ValueError("link-local addresses are refused")


Listen = Annotated[
    str,
    AfterValidator(_tcp),
    Field(json_schema_extra={ACCEPTED: "`HOST:PORT` or `[IPV6]:PORT`, as in `127.0.0.1:8080`"}),
]
"""Where the data listener stands."""
AdminListen = Annotated[
    str,
    AfterValidator(_any_listener),
    Field(json_schema_extra={ACCEPTED: "`HOST:PORT`, `[IPV6]:PORT` or `unix:/PATH`, as in `127.0.0.1:9901`"}),
]
"""Where the admin listener stands."""
ReplicaUrl = Annotated[
    str,
    AfterValidator(_replica_url),
    Field(json_schema_extra={ACCEPTED: "`http://HOST:PORT`, `https://HOST:PORT` or `simulated:`"}),
]
"""Where a replica is asked."""
