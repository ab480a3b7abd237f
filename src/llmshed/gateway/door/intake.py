"""Reading a body within its bounds of size and time, whatever its framing."""

import asyncio
from collections.abc import Callable

from aiohttp import web

from llmshed.admission.reasons import Reason
from llmshed.config.server import ServerSettings
from llmshed.engines.base import BodyError
from llmshed.gateway.door.gates import too_large

LEAST_BYTES_PER_SECOND = 1024
SLOW_START_SECONDS = 10.0
"""A body may be this slow at its start; after it, the mean must hold `LEAST_BYTES_PER_SECOND`."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


async def read_body(request: web.BaseRequest, settings: ServerSettings, now: Callable[[], float]) -> bytes:
    """Read the body to its end; chunked bodies are counted as they come, so no more than the bound is ever held.

    Raises:
        BodyError: `body_too_large`; `malformed` when it came too slowly or broke its framing. The connection cannot
            be used further after either.
    """
    if request.headers.get("Expect", "").lower() == "100-continue" and request.version >= (1, 1):
        await request.writer.write(_CONTINUE)
        request.writer.output_size = 0  # an interim answer is no answer yet
    began = now()
    parts: list[bytes] = []
    size = 0
    try:
        while not request.content.at_eof():
            if request.content.is_eof():  # the rest is here, as all of most bodies is at once: a timer would be dear
                part = request.content.read_nowait()
            else:
                allowed = min(settings.body_timeout_seconds, SLOW_START_SECONDS + size / LEAST_BYTES_PER_SECOND)
                async with asyncio.timeout(max(0.0, began + allowed - now())):
                    part = await request.content.readany()
            size += len(part)
            if size > settings.max_body_bytes:
                raise too_large(settings.max_body_bytes)
            parts.append(part)
    except TimeoutError:
        raise BodyError(
            Reason.MALFORMED,
            f"The request body came too slowly: it must be complete within {settings.body_timeout_seconds:g} s"
            f" and keep {LEAST_BYTES_PER_SECOND} bytes per second.",
        ) from None
    except web.RequestPayloadError:
        raise BodyError(Reason.MALFORMED, "The request body breaks its own framing.") from None
    return b"".join(parts)
