"""The way of a stream's bytes to its client: straight to the transport, under the framing that was announced."""

from aiohttp import web


class ClientGoneError(Exception):
    """The client's connection broke, or the client left what was written unread for too long."""


class Outlet:
    """Writes the body of one response, whose headers are out.

    Writing never waits. `full` says when the client has left so much unread that nothing more ought to be written
    until `drained` returns. The response's own methods may be used in between; they know nothing of what was written.
    """

    __slots__ = ("_chunked", "_protocol", "_request", "_transport", "_written_end")

    def __init__(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        """Take the way to the client of `request`, which `response` was prepared for.

        Raises:
            ClientGoneError: the client has left.
        """
        transport = request.transport
        if transport is None:
            raise ClientGoneError
        self._request = request
        self._protocol = request.protocol
        self._transport = transport
        self._chunked = response.headers.get("Transfer-Encoding") == "chunked"
        self._written_end = b"\n\n"

    @property
    def full(self) -> bool:
        """Say whether the client's unread bytes are over the transport's mark."""
        return self._protocol.writing_paused

    @property
    def between_events(self) -> bool:
        """Say whether what was written ends with a whole event."""
        return self._written_end == b"\n\n"

    def write(self, piece: bytes) -> None:
        """Write the next bytes of the body.

        Raises:
            ClientGoneError: the client has left.
        """
        if not piece:
            return  # in chunked framing it would be the end
        if self._transport.is_closing():
            raise ClientGoneError
        self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece)
        self._written_end = piece[-2:] if len(piece) > 1 else self._written_end[-1:] + piece

    async def drained(self) -> None:
        """Wait until the client has read enough for more to be written.

        Raises:
            ClientGoneError: the client has left.
        """
        try:
            await self._request.writer.drain()
        except ConnectionError as error:
            raise ClientGoneError from error
