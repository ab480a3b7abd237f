"""Web pages that send work to a data listener without keys, from a browser on this machine.

Without keys whoever reaches the listener may send work, and it stands on loopback so that only this machine does. A
browser on it reaches it too, for any page that it shows: one that had its own name pointed to 127.0.0.1 after it was
opened (DNS rebinding) may post to it as to its own server. Browsers send `Origin` with everything but GET and HEAD, and
no page can leave it out or change it; so that is what is looked at in a POST, before any work is done.

`Host` is not looked at, as the admin listener does: a front on this machine may send on the name that it is known by,
and what a page could read by GET, such as the models' names, is no secret.
"""

import functools
import ipaddress
from urllib.parse import urlsplit

from multidict import CIMultiDictProxy

from llmshed.admission.reasons import Reason
from llmshed.config.server import ServerSettings
from llmshed.engines.base import BodyError

_REMEMBERED_ORIGINS = 64
"""A page's origin is the same in all its requests."""


def refuse_pages_of_elsewhere(headers: CIMultiDictProxy[str], server: ServerSettings) -> None:
    """Take no work from a page of elsewhere; only for a listener that asks nobody for a key.

    `server.allow_keyless` says that strangers may come, so it lets them in.

    Raises:
        BodyError: `forbidden`.
    """
    if server.allow_keyless:
        return
    if not all(map(is_of_here, headers.getall("Origin", ()))):
        raise _refused("Origin")
    if "cross-site" in headers.getall("Sec-Fetch-Site", ()):
        raise _refused("Sec-Fetch-Site")


def _refused(header: str) -> BodyError:
    message = (
        "Without keys this endpoint takes no work from web pages of elsewhere; `[[tenants]]` with keys or"
        " `server.allow_keyless` let them in."
    )
    return BodyError(Reason.FORBIDDEN, message, header)


@functools.lru_cache(_REMEMBERED_ORIGINS)
def is_of_here(url: str, listener_host: str = "localhost") -> bool:
    """Say whether the host of a URL is this machine's by a name that nobody else can point elsewhere."""
    try:
        name = (urlsplit(url).hostname or "").removesuffix(".")
        if name in {"localhost", listener_host} or name.endswith(".localhost"):
            return True
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
