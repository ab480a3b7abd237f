"""Which peers of a connection are this machine."""

import ipaddress


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
