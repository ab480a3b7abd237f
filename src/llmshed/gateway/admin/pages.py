"""Web pages that ask the admin listener from a browser on this machine.

Without a token whoever reaches the listener is its operator, and it stands on loopback so that only this machine does.
A browser on it reaches it too, for any page that it shows. A page of elsewhere sends its own `Origin`, or says
`cross-site`. One whose name was made to point to 127.0.0.1 after it was opened (DNS rebinding) counts as the listener's
own page; but it asks for its own name, which stands in `Host`.
"""

import ipaddress
from urllib.parse import urlsplit

from multidict import CIMultiDictProxy

from llmshed.admission.reasons import Reason
from llmshed.config.addresses import Address
from llmshed.engines.base import BodyError


def refuse_pages_of_elsewhere(headers: CIMultiDictProxy[str], listener: Address) -> None:
    """Take only what is asked by a name of this machine, and by no page of another.

    A request without these headers is none of a browser's. A unix socket is out of its reach.

    Raises:
        BodyError: `forbidden`.
    """
    if listener.unix_path is not None:
        return
    if not all(_is_here(f"//{host}", listener) for host in headers.getall("Host", [])):
        raise _refused("Without a token the admin listener is asked by `localhost` or a loopback address", "Host")
    if not all(_is_here(origin, listener) for origin in headers.getall("Origin", [])):
        raise _refused("Without a token the admin listener is not asked by web pages of elsewhere", "Origin")
    if "cross-site" in headers.getall("Sec-Fetch-Site", []):
        raise _refused("Without a token the admin listener is not asked by web pages of elsewhere", "Sec-Fetch-Site")


def _refused(sentence: str, header: str) -> BodyError:
    return BodyError(Reason.FORBIDDEN, f"{sentence}; `server.admin_token_file` sets a token.", header)


def _is_here(url: str, listener: Address) -> bool:
    """Say whether the host of a URL is this machine's by a name that nobody else can point elsewhere."""
    try:
        name = (urlsplit(url).hostname or "").removesuffix(".")
        if name in {"localhost", listener.host.lower()} or name.endswith(".localhost"):
            return True
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
