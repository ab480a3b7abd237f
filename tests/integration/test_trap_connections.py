"""What connections do by default where nobody says otherwise: their timers, their lines, and peers that are gone."""

import asyncio
import socket

import pytest

from fakes.engine import Conversation, ScriptedEngine
from fakes.house import House, house, raw, request_bytes, until
from fakes.upstreams import with_upstream
from llmshed.gateway.door.listener import Listener
from llmshed.gateway.relay.by_scheme import UpstreamByScheme
from llmshed.gateway.relay.upstream import UpstreamClient, read_whole

JSON = {"Content-Type": "application/json"}
WATCHED = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
LONG = {"inputs": "Hello", "parameters": {"max_new_tokens": 4000}}


@pytest.mark.slow
@with_upstream
async def test_a_slow_answer_is_cut_by_no_timer_of_the_client(upstream: UpstreamClient) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        for number in range(6):
            await asyncio.sleep(0.06)
            await conversation.piece(b"data: %d\n\n" % number)
        await conversation.end_stream()

    async with ScriptedEngine(script) as engine:
        answer = await upstream.send(engine.url, b"{}", JSON)
        assert (await read_whole(answer)).count(b"data:") == 6


async def test_an_idle_connection_is_closed_after_the_time_that_is_set() -> None:
    async with house("[server]\nkeepalive_seconds = 0.1\n") as gate, raw(gate) as (reader, writer):
        writer.write(request_bytes("/generate", {"inputs": "Hello", "parameters": {"max_new_tokens": 1}}))
        async with asyncio.timeout(12):
            answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert b"onnection: close" not in answer


@with_upstream
async def test_a_line_longer_than_any_reader_of_lines_takes_passes(upstream: UpstreamClient) -> None:
    line = b"data: " + b"x" * 600_000

    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        await conversation.piece(line)
        await conversation.end_stream()

    async with ScriptedEngine(script) as engine:
        answer = await upstream.send(engine.url, b"{}", JSON)
        assert await read_whole(answer) == line


def sockets_of(gate: House) -> dict[str, list[socket.socket]]:
    """Return the sockets to clients and to replicas."""
    door, upstream = gate.daemon.gateway._data, gate.daemon.gateway.upstream
    assert isinstance(door, Listener)
    assert isinstance(upstream, UpstreamByScheme)
    clients = [connection.transport for connection in door.server.connections]
    replicas = [connection._transport for connection in upstream._plain._pool._origins]
    ends = {"clients": clients, "replicas": replicas}
    return {end: [one.get_extra_info("socket") for one in some if one is not None] for end, some in ends.items()}


@pytest.mark.slow
async def test_every_connection_notices_within_20_s_that_its_peer_vanished() -> None:
    """By the kernel's probes while nothing is sent; a replica also by what it does not acknowledge.

    Of a client, which may be there and only not read, the gateway sees by itself that nothing is heard.
    """
    async with house() as gate, raw(gate) as (reader, writer):
        writer.write(request_bytes("/generate_stream", LONG))
        await reader.readuntil(b"data:")
        for end, sockets in sockets_of(gate).items():
            assert sockets, end
            for one in sockets:
                assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                idle, each, probes, unacknowledged_ms = (one.getsockopt(socket.IPPROTO_TCP, name) for name in WATCHED)
                assert idle + probes * each <= 20
                assert end == "clients" or 0 < unacknowledged_ms <= 20_000
        writer.transport.abort()
        await until(lambda: gate.active_tokens() == 0)
