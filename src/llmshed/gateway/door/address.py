"""Addresses as people and peers write them: the text and URL of a listener, and which peers are this machine."""

import ipaddress

from llmshed.config.addresses import Address

_ALL = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not bound


def address_text(address: Address) -> str:
    """Return the address as a setting spells it."""
    if address.unix_path is not None:
        return f"unix:{address.unix_path}"
    return f"{_bracketed(address.host)}:{address.port}"


def base_url(address: Address, port: int) -> str:
    """Return how clients of this machine reach a TCP listener; an address that stands for all is told as loopback."""
    return f"http://{_bracketed(_ALL.get(address.host, address.host))}:{port}"


def is_loopback_peer(peer: object) -> bool:
    """Say whether a connection's peer, as the socket names it, is this machine (a unix socket's peer always is)."""
    host = peer[0] if isinstance(peer, tuple) else peer
    if not host:
        return True
    try:
        address = ipaddress.ip_address(str(host))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback or (mapped is not None and mapped.is_loopback)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
