"""A bare proxy of aiohttp's server and client on uvloop: `aiohttp_proxy.py PORT REPLICA_PORT`."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvloop
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web
from multidict import CIMultiDictProxy

_OF_ONE_HOP = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "host", "content-length", "te", "trailer", "upgrade"}
)
_SESSION = web.AppKey("session", ClientSession)


def _passed_on(headers: CIMultiDictProxy[str]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers.items() if name.lower() not in _OF_ONE_HOP]


async def _relay(request: web.Request, replica: str) -> web.StreamResponse:
    body, headers = await request.read(), _passed_on(request.headers)
    url = replica + request.path_qs
    async with request.app[_SESSION].request(request.method, url, headers=headers, data=body) as answer:
        if not answer.content_type.startswith("text/event-stream"):
            content = await answer.read()
            return web.Response(status=answer.status, body=content, headers=dict(_passed_on(answer.headers)))
        response = web.StreamResponse(status=answer.status, headers=dict(_passed_on(answer.headers)))
        await response.prepare(request)
        async for chunk in answer.content.iter_any():
            await response.write(chunk)
        await response.write_eof()
        return response


async def _serve(port: int, replica: str) -> None:
    @asynccontextmanager
    async def session(app: web.Application) -> AsyncIterator[None]:
        connector = TCPConnector(limit=0)
        timeout = ClientTimeout(total=600)
        async with ClientSession(
            connector=connector, timeout=timeout, auto_decompress=False, cookie_jar=DummyCookieJar()
        ) as app[_SESSION]:
            yield

    async def handle(request: web.Request) -> web.StreamResponse:
        return await _relay(request, replica)

    app = web.Application(client_max_size=8 << 20)
    app.cleanup_ctx.append(session)
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=4096).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), f"http://127.0.0.1:{sys.argv[2]}"))
