"""Names of replicas to addresses: looked up in a thread, remembered for a moment, and once for all who ask at once."""

import asyncio
import ipaddress
import socket

FRESH_SECONDS = 10.0
"""How long an answer is used: a burst of new connections asks once, and a name that moves is followed soon."""


class Names:
    """Looks names up; an address is its own answer.

    Names are those of the configuration, so there are as many answers to keep as there are replicas.
    """

    def __init__(self) -> None:
        """Know no name yet."""
        self._known: dict[str, tuple[float, list[str]]] = {}
        self._asked: dict[str, asyncio.Future[list[str]]] = {}

    async def addresses(self, host: str) -> list[str]:
        """Return the addresses of a host in the order in which they are to be tried.

        Raises:
            OSError: the name cannot be resolved.
        """
        if _is_address(host):
            return [host]
        loop = asyncio.get_running_loop()
        until, known = self._known.get(host, (0.0, []))
        if known and loop.time() < until:
            return known
        asked = self._asked.get(host)
        if asked is None:
            asked = self._asked[host] = loop.run_in_executor(None, _look_up, host)
            asked.add_done_callback(lambda done: self._answered(host, done, loop.time() + FRESH_SECONDS))
        return await asyncio.shield(asked)

    def _answered(self, host: str, done: "asyncio.Future[list[str]]", until: float) -> None:
        del self._asked[host]
        if not done.cancelled() and done.exception() is None:
            self._known[host] = until, done.result()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _look_up(host: str) -> list[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
