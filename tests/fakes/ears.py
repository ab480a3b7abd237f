"""What a running gateway hears at its data listener: each request as its handler reads it, and everything else."""

from typing import Any

import pytest
from aiohttp import web

from fakes.framing import PATHS, Read
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.door import door
from llmshed.gateway.door.door import DataDoor
from llmshed.gateway.door.intake import read_body
from llmshed.gateway.door.routes import DataRoute
from llmshed.gateway.door.server import GatewayProtocol
from llmshed.gateway.door.visit import Visit


class Ears:
    """Serves the payloads' paths behind the real door; `read` lists what handlers read, `ids` under what ids.

    `heard` counts all answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[Read] = []
        self.ids: list[str] = []
        self.heard = 0
        enter, fail = DataDoor.__call__, GatewayProtocol.handle_error

        async def entered(own: DataDoor, request: web.BaseRequest) -> web.StreamResponse:
            self.heard += 1
            return await enter(own, request)

        def failed(own: GatewayProtocol, *args: Any, **named: Any) -> web.StreamResponse:
            self.heard += 1
            return fail(own, *args, **named)

        async def record(gateway: Gateway, visit: Visit) -> web.StreamResponse:
            body = await read_body(visit.request, visit.snapshot.config.server, gateway.clock.now)
            self.read.append((visit.request.method, visit.path, body))
            self.ids.append(visit.request_id)
            return web.Response(text="read", headers={"x-request-id": visit.request_id})

        monkeypatch.setattr(DataDoor, "__call__", entered)
        monkeypatch.setattr(GatewayProtocol, "handle_error", failed)
        monkeypatch.setattr(door, "DATA_ROUTES", dict.fromkeys(PATHS, DataRoute(get=record, post=record)))

    def take(self) -> tuple[Read, ...]:
        """Return what was read since the last call, and forget it and its ids."""
        taken = tuple(self.read)
        self.read.clear()
        self.ids.clear()
        return taken
