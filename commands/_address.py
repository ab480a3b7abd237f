"""The address of a gateway or a replica, as it is typed."""

from urllib.parse import urlsplit

import typer


def read_address(option: str, text: str) -> str:
    """Return an address, `http://` put before it where it names no scheme, without a slash at its end.

    Raises:
        typer.BadParameter: it is none, or has what no address of a server has: a user, a query, a fragment.
    """
    url = (text if "://" in text else f"http://{text}").rstrip("/")
    wrong = typer.BadParameter(f"{option} {text!r}: an address as in http://127.0.0.1:8080 is needed")
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port beyond 65,535, half of an IPv6 address
        raise wrong from None
    if not known or not url.isprintable() or " " in url:
        raise wrong
    if "@" in parts.netloc:  # not repeated: it may hold a password, and would stand in every result
        raise typer.BadParameter(f"{option}: an address without a user is needed; a key is read from --key-file")
    if parts.query or parts.fragment:
        raise typer.BadParameter(f"{option} {text!r}: an address without ? and # is needed")
    return url
