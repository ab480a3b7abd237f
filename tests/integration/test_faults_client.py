"""Whatever befalls the way between a client and the gateway: one ending, a free ledger, a closed connection.

In leaping time, by the times that are documented.
"""

import asyncio
from typing import Any

import pytest

from fakes.fault_proxy import UNHARMED, Fault, FaultProxy, Harm
from fakes.house import House, request_bytes, until
from fakes.leaping import in_leaping_time, leaping_house

TOKENS = 40
ASKED = request_bytes(
    "/generate_stream", {"inputs": "Hello", "parameters": {"max_new_tokens": TOKENS}}, "Connection: close"
)
LEAVING = [Harm.CUT, Harm.HALF_CLOSE, Harm.RESET]
LATE = [Fault(Harm.DELAY, 0, 5.0), Fault(Harm.DRIBBLE, 0, 0.05, 100)]
"""Slow, but within the time that headers and bodies have."""


async def ask_through(gate: House, there: Fault = UNHARMED, back: Fault = UNHARMED) -> bytes:
    """Ask by a connection with these faults, read to its end and leave; afterwards nothing may be left of it."""
    said = b""
    async with FaultProxy(gate.data, there, back) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(ASKED)
        try:
            while part := await reader.read(65_536):
                said += part
        except ConnectionResetError:
            assert Harm.RESET in {there.harm, back.harm}
        writer.close()
        await until(lambda: proxy.open == 0)
    data = gate.daemon.gateway._data
    assert data is not None
    await until(lambda: not data.server.connections and gate.daemon.gateway.running() == gate.active_tokens() == 0)
    assert gate.daemon.gateway.driver.charged == 0
    assert gate.replicas[0].replica.live == {}
    return said


async def ending(gate: House) -> tuple[Any, Any]:
    """Return how the one request ended and in what phase."""
    line = await gate.decision()
    assert len(gate.decisions) == 1
    gate.decisions.clear()
    return line["ending"], line["termination"]


@in_leaping_time
async def test_a_request_that_never_comes_whole_is_no_request_or_one_that_was_cancelled() -> None:
    async with leaping_house(pool="release_grace_seconds = 0.05") as gate:
        for harm in LEAVING:
            assert await ask_through(gate, there=Fault(harm, 40)) == b""
            assert gate.decisions == []
            assert await ask_through(gate, there=Fault(harm, len(ASKED) - 5)) == b""
            assert await ending(gate) == ("cancelled", "CB")


@in_leaping_time
async def test_a_request_that_stops_on_its_way_is_told_so_when_its_time_is_over() -> None:
    async with leaping_house() as gate:
        assert await ask_through(gate, there=Fault(Harm.STALL, 40)) == b""
        assert gate.decisions == []
        said = await ask_through(gate, there=Fault(Harm.STALL, len(ASKED) - 5))
        assert said.startswith(b"HTTP/1.1 400 ")
        assert b"too slowly" in said
        assert await ending(gate) == ("refused", "GB")


@pytest.mark.slow
@in_leaping_time
async def test_what_is_only_late_is_served_whole() -> None:
    async with leaping_house() as gate:
        for fault in LATE:
            for said in (await ask_through(gate, there=fault), await ask_through(gate, back=fault)):
                assert said.startswith(b"HTTP/1.1 200 ")
                assert said.count(b'"token":') == TOKENS
                assert said.endswith(b"0\r\n\r\n")
        assert {line["ending"] for line in gate.decisions} == {"finished"}


@pytest.mark.slow
@in_leaping_time
async def test_a_client_whose_connection_breaks_in_the_answer_has_left() -> None:
    async with leaping_house(pool="release_grace_seconds = 0.05") as gate:
        for harm in LEAVING:
            for place in (20, 3_000):
                said = await ask_through(gate, back=Fault(harm, place))
                assert len(said) <= place
                assert await ending(gate) == ("cancelled", "CD")
