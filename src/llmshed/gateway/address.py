"""Where a listener stands: `HOST:PORT` or `unix:/PATH`, and whether only this machine can reach it."""

import ipaddress
from dataclasses import dataclass, replace

from llmshed.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed listen setting; `unix_path` is None for TCP."""

    host: str = ""
    port: int = 0
    unix_path: str | None = None

    @classmethod
    def parse(cls, text: str, setting: str) -> "Address":
        """Read `HOST:PORT`, `[IPV6]:PORT` or `unix:/PATH`.

        Raises:
            ConfigError: names the setting and the forms that are accepted.
        """
        if text.startswith("unix:"):
            path = text.removeprefix("unix:")
            if not path.startswith("/"):
                raise ConfigError((f"{setting}: {text!r}: a unix socket needs an absolute path, unix:/PATH",))
            return cls(unix_path=path)
        host, colon, port = text.rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        host = host[1:-1] if bracketed else host
        valid_port = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65_535
        if not colon or not host or not valid_port or (":" in host and not bracketed):
            raise ConfigError((f"{setting}: {text!r}: must be HOST:PORT with a port of 0 to 65535, as 127.0.0.1:8080",))
        return cls(host, int(port))

    @property
    def loopback(self) -> bool:
        """Say whether only this machine can reach the address; a unix socket is guarded by its file's mode."""
        if self.unix_path is not None or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        """Return the base URL of a TCP address; an address that stands for all is told as loopback."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - read, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def with_port(self, port: int) -> "Address":
        """Return the same address with the port that the kernel chose."""
        return replace(self, port=port)

    def __str__(self) -> str:
        if self.unix_path is not None:
            return f"unix:{self.unix_path}"
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def is_loopback_peer(remote: object) -> bool:
    """Say whether a connection's peer, as the socket names it, is this machine (a unix socket's peer always is)."""
    host = remote[0] if isinstance(remote, tuple) else remote
    if not isinstance(host, str) or host == "":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback or (mapped is not None and mapped.is_loopback)
