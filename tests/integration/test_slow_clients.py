"""Clients that open connections and hardly use them: each kind has its time, and those beside them are served.

In leaping time, by the times that are documented; `tests/soak/test_peers_crowd.py` has thousands of them in real time.
"""

import asyncio
import resource
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

import aiohttp
import orjson
import pytest

from fakes.house import House, raw
from fakes.leaping import in_leaping_time, leaping_house
from llmshed.gateway.door import listener
from llmshed.gateway.door.server import LINGER_SECONDS

ASKED = {"inputs": "Hello", "parameters": {"max_new_tokens": 2}}
OF_EACH = 8
HEADER = b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
CHUNKED = HEADER + b"Transfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Slow:
    """How a slow client sends: `first` at once, then `piece` once a second, as often as there is something to send.

    Args:
        ends_after_seconds: when the gateway is to close the connection, or to have answered it; after an early answer
            it reads on for a while, so that the answer is not lost.
        status: what the gateway answers; None when it closes without a word.
    """

    first: bytes
    piece: bytes
    pieces: int
    ends_after_seconds: float
    status: int | None


def posting(body_bytes: int) -> bytes:
    """Return the headers of a body of this size."""
    return HEADER + b"Content-Length: %d\r\n\r\n" % body_bytes


def padded(size: int) -> bytes:
    """Return a question as so many bytes, most of them blanks before it."""
    return orjson.dumps(ASKED).rjust(size)


KINDS = {
    "never sends a byte": Slow(b"", b"", 0, 75.0, None),
    "dribbles its headers": Slow(HEADER[:10], b"x", 1000, 15.0, None),
    "sends a header a second": Slow(HEADER, b"x-more: 1\r\n", 1000, 15.0, None),
    "stops within its headers": Slow(HEADER, b"", 0, 15.0, None),
    "dribbles its body": Slow(posting(100_000), b" " * 100, 1000, 11.0 + LINGER_SECONDS, 400),
    "stops within its body": Slow(posting(100_000) + b"{", b"", 0, 10.0 + LINGER_SECONDS, 400),
    "sends a body that takes too long": Slow(posting(200_000), b" " * 2048, 1000, 60.0 + LINGER_SECONDS, 400),
    "sends a body as slowly as it may": Slow(posting(40_960), b"", 20, 19.0, 200),
    "dribbles chunks": Slow(CHUNKED, b"1\r\n \r\n", 1000, 10.0 + LINGER_SECONDS, 400),
}
PIECES = {"sends a body as slowly as it may": [padded(40_960)[at : at + 2048] for at in range(0, 40_960, 2048)]}


def connections(gate: House) -> int:
    """Return how many client connections the data listener holds."""
    data = gate.daemon.gateway._data
    assert data is not None
    return len(data.server.connections)


async def come(gate: House, name: str) -> tuple[float, bytes]:
    """Be such a client; return how long the gateway bore it, and what it said in the end."""
    kind = KINDS[name]
    loop = asyncio.get_running_loop()
    async with raw(gate) as (reader, writer):
        came_at = loop.time()
        writer.write(kind.first)
        said = bytearray()
        reading = asyncio.ensure_future(_listen(reader, said, b"}" if kind.status == 200 else None))
        for piece in PIECES.get(name, [kind.piece] * kind.pieces):
            if reading.done() or writer.is_closing():
                break
            writer.write(piece)
            await asyncio.wait([reading], timeout=1.0)
        await reading
        return loop.time() - came_at, bytes(said)


async def _listen(reader: asyncio.StreamReader, said: bytearray, until: bytes | None) -> None:
    """Note what is said up to its end, or up to these bytes."""
    with suppress(ConnectionError):  # what was sent last may meet a closed connection
        while (until is None or until not in said) and (part := await reader.read(65_536)):
            said += part


@pytest.mark.slow
@in_leaping_time
async def test_each_slow_client_has_its_time_and_the_others_are_served() -> None:
    async with leaping_house() as gate:
        served: list[int] = []

        async def healthy() -> None:
            while True:
                served.append((await gate.post("/generate", ASKED)).status)
                await asyncio.sleep(1.0)

        beside = asyncio.ensure_future(healthy())
        crowd = [name for name in KINDS for _ in range(OF_EACH)]
        ends = await asyncio.gather(*(come(gate, name) for name in crowd))
        beside.cancel()
        await asyncio.wait([beside])
        for name, (seconds, said) in zip(crowd, ends, strict=True):
            kind = KINDS[name]
            assert seconds == pytest.approx(kind.ends_after_seconds, abs=1.5), name
            if kind.status is None:
                assert said == b"", name
            else:
                assert said.startswith(b"HTTP/1.1 %d " % kind.status), (name, said)
            if kind.status == 400:
                assert b"too slowly" in said
        assert set(served) == {200}
        assert len(served) >= 70
        assert connections(gate) <= 1  # that of the healthy client


@in_leaping_time
async def test_a_second_request_has_the_same_time_for_its_headers() -> None:
    async with leaping_house() as gate, raw(gate) as (reader, writer):
        content = orjson.dumps(ASKED)
        loop = asyncio.get_running_loop()
        # The beginning of the second one comes with the first, and the rest of it never.
        writer.write(posting(len(content)) + content + HEADER)
        assert b" 200 " in await reader.readuntil(b"\r\n")
        began = loop.time()
        while not reader.at_eof():
            writer.write(b"x")
            await reader.read(1000)
            await asyncio.sleep(1.0)
        assert loop.time() - began == pytest.approx(15.0, abs=2.5)


@pytest.mark.slow
@in_leaping_time
async def test_a_crowd_beyond_what_descriptors_allow_displaces_itself_and_nobody_who_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Newcomers get in at once, whether the others said nothing, began a header, or keep a used connection."""
    monkeypatch.setattr(listener, "most_connections", lambda: 20)
    async with leaping_house() as gate, AsyncExitStack() as stack:
        long = {"inputs": "Hello", "parameters": {"max_new_tokens": 1000}}
        stream = await stack.enter_async_context(gate.session.post(f"{gate.data}/generate_stream", json=long))
        used = await stack.enter_async_context(aiohttp.ClientSession())
        async with used.post(f"{gate.data}/generate", json=ASKED) as answer:
            assert answer.status == 200
        crowd = [await stack.enter_async_context(raw(gate)) for _ in range(60)]
        for _, writer in crowd[::2]:
            writer.write(HEADER)
        for _ in range(3):
            async with (
                aiohttp.ClientSession() as newcomer,
                newcomer.post(f"{gate.data}/generate", json=ASKED) as answer,
            ):
                assert answer.status == 200
        assert connections(gate) <= 20
        assert await crowd[0][0].read() == b""
        assert not crowd[-1][0].at_eof()
        assert (await stream.read()).count(b'"token":') == 1000
        page = (await gate.ask("GET", "/metrics", admin=True)).body
        assert b'llmshed_connections_displaced_total{which="newcomer"} 0.0' in page
        assert b'llmshed_connections_displaced_total{which="idle"} 0.0' not in page


@pytest.mark.parametrize("soft", [64, 256, 1024, 20_000, 1_048_576])
def test_fewer_connections_are_taken_than_half_of_the_descriptors(soft: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert 0 < listener.most_connections() < soft / 2
