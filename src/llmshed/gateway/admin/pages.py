"""Web pages that ask the admin listener from a browser on this machine.

Without a token whoever reaches the listener is its operator, and it stands on loopback so that only this machine does.
A browser on it reaches it too, for any page that it shows. A page of elsewhere sends its own `Origin`, or says
`cross-site`. One whose name was made to point to 127.0.0.1 after it was opened (DNS rebinding) counts as the listener's
own page; but it asks for its own name, which stands in `Host`.
"""

from multidict import CIMultiDictProxy

from llmshed.admission.reasons import Reason
from llmshed.config.addresses import Address
from llmshed.engines.base import BodyError
from llmshed.gateway.door.pages import is_of_here


def refuse_pages_of_elsewhere(headers: CIMultiDictProxy[str], listener: Address) -> None:
    """Take only what is asked by a name of this machine, and by no page of another.

    A request without these headers is none of a browser's. A unix socket is out of its reach.

    Raises:
        BodyError: `forbidden`.
    """
    if listener.unix_path is not None:
        return
    if not all(is_of_here(f"//{host}", listener.host.lower()) for host in headers.getall("Host", [])):
        raise _refused("Without a token the admin listener is asked by `localhost` or a loopback address", "Host")
    if not all(is_of_here(origin, listener.host.lower()) for origin in headers.getall("Origin", [])):
        raise _refused("Without a token the admin listener is not asked by web pages of elsewhere", "Origin")
    if "cross-site" in headers.getall("Sec-Fetch-Site", []):
        raise _refused("Without a token the admin listener is not asked by web pages of elsewhere", "Sec-Fetch-Site")


def _refused(sentence: str, header: str) -> BodyError:
    return BodyError(Reason.FORBIDDEN, f"{sentence}; `server.admin_token_file` sets a token.", header)
