"""Opening a listener; what goes over it is in the tests of the server."""

import pytest
from aiohttp import http, web
from aiohttp.http_parser import HttpRequestParserPy

from llmshed.admission.reasons import Reason
from llmshed.config.addresses import Address
from llmshed.config.server import ServerSettings
from llmshed.errors import LlmshedError
from llmshed.gateway.door.listener import open_listener


async def test_without_the_parser_whose_readings_were_tested_nothing_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response()

    def tell(reason: Reason, message: str) -> web.Response:
        return web.Response(text=f"{reason} {message}")

    monkeypatch.setattr(http, "HttpRequestParser", HttpRequestParserPy)
    with pytest.raises(LlmshedError, match="AIOHTTP_NO_EXTENSIONS"):
        await open_listener(Address("127.0.0.1", 0), serve, ServerSettings(), tell, lambda _: None)
