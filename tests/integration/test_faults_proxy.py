"""What the fault proxy does to a connection, in either direction."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fakes.fault_proxy import UNHARMED, Fault, FaultProxy, Harm
from fakes.house import until

ASKED, ANSWER = b"question", b"0123456789"


@asynccontextmanager
async def proxied(there: Fault, back: Fault) -> AsyncIterator[tuple[FaultProxy, list[bytes]]]:
    """Run a proxy before a server that answers the first bytes that come, and then reads on to the end."""
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while part := await reader.read(100):
                if not seen:
                    writer.write(ANSWER)
                seen.append(part)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, FaultProxy(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", there, back) as proxy:
        yield proxy, seen


async def ask(proxy: FaultProxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(ASKED)
    return reader, writer


@pytest.mark.parametrize(
    "fault",
    [UNHARMED, Fault(Harm.DELAY, 4, 0.01), Fault(Harm.DRIBBLE, 4, 0.001), Fault(Harm.DRIBBLE, 0, 0.001, 3)],
    ids=lambda fault: f"{fault.harm.value} after {fault.after}",
)
async def test_what_is_only_late_arrives_whole_in_both_directions(fault: Fault) -> None:
    async with proxied(fault, fault) as (proxy, seen):
        reader, writer = await ask(proxy)
        assert await reader.readexactly(len(ANSWER)) == ANSWER
        await until(lambda: b"".join(seen) == ASKED)
        writer.close()
        await until(lambda: proxy.open == 0)
    assert proxy.taken == 1


@pytest.mark.parametrize("after", [0, 4])
@pytest.mark.parametrize("harm", [Harm.CUT, Harm.HALF_CLOSE])
async def test_an_answer_that_is_cut_ends_in_order(harm: Harm, after: int) -> None:
    async with proxied(UNHARMED, Fault(harm, after)) as (proxy, _):
        reader, writer = await ask(proxy)
        assert await reader.read() == ANSWER[:after]
        writer.close()
        await until(lambda: proxy.open == 0)


async def test_a_reset_is_no_end_in_order() -> None:
    async with proxied(UNHARMED, Fault(Harm.RESET)) as (proxy, _):
        reader, _ = await ask(proxy)
        with pytest.raises(ConnectionResetError):
            await reader.read()
        await until(lambda: proxy.open == 0)


async def test_a_stalled_answer_stays_open_until_its_reader_leaves() -> None:
    async with proxied(UNHARMED, Fault(Harm.STALL, 4)) as (proxy, _):
        reader, writer = await ask(proxy)
        assert await reader.readexactly(4) == ANSWER[:4]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.05)
        assert proxy.open == 1
        writer.close()
        await until(lambda: proxy.open == 0)


@pytest.mark.parametrize("harm", [harm for harm in Harm if harm.loses_bytes])
async def test_of_a_question_that_is_harmed_only_its_beginning_arrives(harm: Harm) -> None:
    async with proxied(Fault(harm, 4), UNHARMED) as (proxy, seen):
        _, writer = await ask(proxy)
        if harm is not Harm.RESET:
            await until(lambda: b"".join(seen) == ASKED[:4])
        if harm is not Harm.STALL:
            await until(lambda: proxy.open == 0)
        assert b"".join(seen) in {b"", ASKED[:4]}
        writer.close()
