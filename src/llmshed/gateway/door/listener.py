"""An open door: an address that is bound, the server behind it, and its three steps of closing."""

import asyncio
import os
import resource
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aiohttp import http
from aiohttp.http_parser import HttpRequestParserPy

from llmshed.config.addresses import Address
from llmshed.config.server import ServerSettings
from llmshed.errors import EngineError, LlmshedError
from llmshed.gateway.door.crowding import Places
from llmshed.gateway.door.server import ErrorAnswer, GatewayServer, Handler
from llmshed.gateway.door.vanished import end_vanished
from llmshed.gateway.tasks import Tasks
from llmshed.observability.metrics import Displaced

BACKLOG = 4096


@dataclass(slots=True)
class Listener:
    """An open listener; `url` is how clients of this machine reach it."""

    server: GatewayServer
    sockets: asyncio.Server
    tasks: Tasks
    url: str
    unix_path: str | None = None

    def retire(self) -> None:
        """Close each connection with its next answer; new ones are still taken, to be told so."""
        self.server.retiring = True

    def stop_listening(self) -> None:
        """Refuse new connections and close idle ones; those that carry a request, or its body, go on."""
        self.retire()
        self.sockets.close()
        self.server.close_idle()

    async def close(self, grace_seconds: float) -> None:
        """End every connection: idle ones at once, those with a request after the grace to finish it."""
        self.stop_listening()
        await self.server.shutdown(grace_seconds)
        await self.tasks.cancel_all()
        if self.unix_path is not None:
            _unlink(self.unix_path)


async def open_listener(
    address: Address,
    handler: Handler,
    settings: ServerSettings,
    error_answer: ErrorAnswer,
    displaced: Callable[[Displaced], None],
) -> Listener:
    """Bind an address and serve it; `displaced` hears of connections that are closed for want of descriptors.

    Raises:
        EngineError: the address is taken or not this machine's; the text names it and the way out.
        LlmshedError: aiohttp runs without its C parser, whose strictness about framing is relied on.
    """
    require_c_parser()
    loop = asyncio.get_running_loop()
    server = GatewayServer(handler, settings, error_answer, Places(most_connections(), displaced))
    try:
        if address.unix_path is not None:
            sockets = await loop.create_unix_server(server, sock=_bind_unix(address.unix_path), backlog=BACKLOG)
            return Listener(server, sockets, _watch(server), str(address), address.unix_path)
        sockets = await loop.create_server(server, address.host, address.port, backlog=BACKLOG)
    except OSError as error:
        raise EngineError(f"{address}: cannot listen: {_way_out(error)}") from error
    port: int = sockets.sockets[0].getsockname()[1]
    return Listener(server, sockets, _watch(server), address.local_url(port))


def _watch(server: GatewayServer) -> Tasks:
    tasks = Tasks()
    tasks.spawn(end_vanished(server.transports), "end-vanished")
    return tasks


def require_c_parser() -> None:
    """Insist on the parser whose readings were tested.

    Raises:
        LlmshedError: aiohttp fell back to its Python parser, which reads ten ambiguous framings otherwise.
    """
    if http.HttpRequestParser is HttpRequestParserPy:
        raise LlmshedError(
            "aiohttp runs without its C parser (AIOHTTP_NO_EXTENSIONS is set, or no wheel fits this machine);"
            " llmshed relies on its strict framing and does not start without it"
        )


def most_connections() -> int:
    """Return how many client connections fit: half of the descriptors, since each may need one to a replica."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, soft // 2 - 32) if soft != resource.RLIM_INFINITY else 1 << 20


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard one, as servers do."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _bind_unix(path: str) -> socket.socket:
    """Bind a socket that only the owner and its group may open, from its first instant on."""
    _remove_stale_socket(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o117)
    try:
        listening.bind(path)
    except OSError:
        listening.close()
        raise
    finally:
        os.umask(before)
    return listening


def _unlink(path: str) -> None:
    with suppress(OSError):
        Path(path).unlink()


def _remove_stale_socket(path: str) -> None:
    """Remove a socket that no process serves any more; one that answers stays and makes the bind fail."""
    if not Path(path).is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink(missing_ok=True)
        except OSError:
            return


def _way_out(error: OSError) -> str:
    text = (error.strerror or str(error)).lower()
    if "in use" in text:
        return "the address is in use; stop what listens there or choose another"
    return text
