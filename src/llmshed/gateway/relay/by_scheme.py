"""The way to all replicas: `http:` over connections of our own, `https:` over aiohttp's."""

from collections.abc import Callable, Mapping

from llmshed.config.server import UpstreamSettings
from llmshed.gateway.relay.aiohttp_upstream import AiohttpUpstream
from llmshed.gateway.relay.plain_upstream import PlainUpstream
from llmshed.gateway.relay.upstream import ScopedUpstream, UpstreamAnswer


class UpstreamByScheme(ScopedUpstream):
    """An `UpstreamClient` that leaves each request to the client for its URL's scheme."""

    def __init__(self, settings: UpstreamSettings) -> None:
        """Start both clients; needs a running event loop."""
        self._plain = PlainUpstream(settings)
        self._tls = AiohttpUpstream(settings)

    async def send(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        on_connected: Callable[[], None] | None = None,
    ) -> UpstreamAnswer:
        """Send one request and wait for status and headers.

        Raises:
            NotSentError: the replica read no byte.
            LostError: it may have, or its answer is not strict HTTP.
        """
        client = self._plain if url.startswith("http://") else self._tls
        return await client.send(url, body, headers, on_connected)

    async def close(self) -> None:
        """Close every connection."""
        await self._plain.close()
        await self._tls.close()
