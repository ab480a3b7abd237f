"""Whatever befalls the way to a replica, in whatever phase: one honest ending, a free ledger, closed sockets.

An answer is whole, or an error under the contract, or a beginning with one error event behind it. It is never a shorter
answer that looks whole, and a request that may have been read is never sent again.
"""

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from fakes.engine import Conversation, Script, ScriptedEngine
from fakes.fault_proxy import UNHARMED, Fault, FaultProxy, Harm
from fakes.front import Front, Got, with_front
from fakes.house import until
from fakes.leaping import in_leaping_time
from llmshed.engines.sse import EventScanner
from llmshed.observability.endings import Ending

HARMS = [harm for harm in Harm if harm is not Harm.NONE]


class Exchange(NamedTuple):
    """A route and what its engine says, as it stands on the wire and as a client reads it."""

    path: str
    asked: object
    head: bytes
    pieces: tuple[bytes, ...]
    chunked: bool

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def parts(self) -> list[bytes]:
        """Return the wire in parts: the head, each piece, and the end."""
        if not self.chunked:
            return [self.head, *self.pieces, b""]
        return [self.head, *(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in self.pieces), b"0\r\n\r\n"]

    def place(self, part: int, beyond: int = 0) -> int:
        """Return how many bytes of the wire stand before a part, and some more."""
        return sum(map(len, self.parts[:part])) + beyond


STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
NATIVE = Exchange(
    "/generate_stream",
    {"inputs": "hello"},
    STREAM_HEAD,
    (
        b'data: {"index":1,"token":{"id":5,"text":" a","logprob":-0.5,"special":false},"generated_text":null}\n\n',
        b'data: {"index":2,"token":{"id":2,"text":"","logprob":0.0,"special":true},"generated_text":" a"}\n\n',
    ),
    chunked=True,
)
CHAT = Exchange(
    "/v1/chat/completions",
    {"messages": [{"role": "user", "content": "hi"}], "stream": True},
    STREAM_HEAD,
    (
        b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}\n\n',
        b"data: [DONE]\n\n",
    ),
    chunked=True,
)
GENERATED = b'{"generated_text":" a"}'
WHOLE = Exchange(
    "/generate",
    {"inputs": "hello"},
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(GENERATED),
    (GENERATED,),
    chunked=False,
)
EXCHANGES = {"native": NATIVE, "chat": CHAT, "whole": WHOLE}


def telling(exchange: Exchange) -> Script:
    async def script(conversation: Conversation) -> None:
        await conversation.raw(b"".join(exchange.parts))

    return script


def phases() -> Iterator[object]:
    """Give each exchange with each place at which its answer may break, and what a client may then be left with."""
    for name, exchange in EXCHANGES.items():
        last = len(exchange.pieces)
        places = {
            "before the head": (0, "refused"),
            "in the head": (exchange.place(0, 20), "refused"),
            "before the first piece": (exchange.place(1), "refused"),
            "in the first piece": (exchange.place(1, 15), "refused"),
        }
        if exchange.chunked:
            places |= {
                "after the first piece": (exchange.place(2), "broken off"),
                "in the last piece": (exchange.place(last, 10), "broken off"),
                "before the end": (exchange.place(last + 1), "whole"),
            }
        for phase, (place, left_with) in places.items():
            yield pytest.param(exchange, place, left_with, id=f"{name}, {phase}")


async def through_each(
    front: Front, engine: ScriptedEngine, exchange: Exchange, faults: list[dict[str, Fault]]
) -> list[Got]:
    """Ask once through each fault, all at the same time; afterwards nothing may be held, open or sent twice."""
    async with AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(FaultProxy(engine.url, **fault)) for fault in faults]
        asking = []
        for proxy in proxies:
            front.urls["r1"] = front.urls["r2"] = proxy.url
            asking.append(asyncio.ensure_future(front.post(exchange.path, exchange.asked)))
            await until(partial(_was_taken, proxy))
        answers = await asyncio.gather(*asking)
        await until(lambda: front.driver.live == 0 and front.driver.charged == 0)
        endings = [outcome.ending for outcome in front.outcomes]
        for proxy, answer in zip(proxies, answers, strict=True):
            assert proxy.taken == 1
            if answer.status != 200 or answer.body != exchange.body:
                await until(partial(_is_closed, proxy))
        assert endings.count(Ending.FINISHED) == [answer.body for answer in answers].count(exchange.body)
        assert set(endings) <= {Ending.FINISHED, Ending.FAILED}
    return list(answers)


def _was_taken(proxy: FaultProxy) -> bool:
    return proxy.taken > 0


def _is_closed(proxy: FaultProxy) -> bool:
    return proxy.open == 0


def left_with(got: Got, exchange: Exchange, reason: str) -> str:
    """Return what a client is left with, after insisting that it is told truly."""
    if got.status == 200 and got.body == exchange.body:
        return "whole"
    if got.status != 200:
        assert (got.status, got.reason) == ({"upstream_error": 502, "upstream_timeout": 504}[reason], reason)
        assert got.headers["x-should-retry"] == "false"
        assert got.json()["error"]
        return "refused"
    begun, mark, _ = got.body.rpartition(b'data: {"error"')
    assert mark
    assert exchange.body.startswith(begun.rstrip(b"\n"))
    assert b'"error"' not in begun
    assert b"[DONE]" not in got.body
    *_, told = EventScanner().feed(got.body)
    error = orjson.loads(told or b"")
    assert reason in {error.get("reason"), error.get("error_type")} or error["error"]["code"] == reason
    return "broken off"


async def harm_answers(front: Front, exchange: Exchange, place: int, expected: str, harms: list[Harm]) -> None:
    async with ScriptedEngine(telling(exchange)) as engine:
        faults = [{"back": Fault(harm, place, 0.002, 50)} for harm in harms]
        answers = await through_each(front, engine, exchange, faults)
        assert len(engine.asked) == len(harms)
    for harm, got in zip(harms, answers, strict=True):
        told = left_with(got, exchange, reason_of(harm))
        if not harm.loses_bytes:
            assert told == "whole", harm
        elif harm is Harm.RESET:  # takes back what its receiver has not read yet
            assert told in {"refused", expected}, harm
        else:
            assert told == expected, harm


async def harm_requests(front: Front, exchange: Exchange, place: int, harms: list[Harm]) -> None:
    async with ScriptedEngine(telling(exchange)) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        assert (await front.post(exchange.path, exchange.asked)).body == exchange.body
        (unharmed,) = engine.asked
        lines = [
            f"POST {exchange.path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in unharmed.headers.items()),
            "",
        ]
        after = place if place >= 0 else sum(len(line) + 2 for line in lines) + len(unharmed.body) + place
        front.outcomes.clear()
        faults = [{"there": Fault(harm, after, 0.002, 50)} for harm in harms]
        answers = await through_each(front, engine, exchange, faults)
        assert len(engine.asked) == 1 + sum(not harm.loses_bytes for harm in harms)
    for harm, got in zip(harms, answers, strict=True):
        told = left_with(got, exchange, reason_of(harm))
        assert told == ("refused" if harm.loses_bytes else "whole"), harm


def reason_of(harm: Harm) -> str:
    return "upstream_timeout" if harm is Harm.STALL else "upstream_error"


ANSWERS = pytest.mark.parametrize(("exchange", "place", "expected"), list(phases()))
REQUESTS = pytest.mark.parametrize(
    ("exchange", "place"),
    [
        pytest.param(exchange, place, id=f"{name}, {phase}")
        for name, exchange in EXCHANGES.items()
        for phase, place in {"before the head": 0, "in the head": 20, "in the body": -5}.items()
    ],
)


@ANSWERS
@with_front
async def test_an_answer_that_is_harmed(exchange: Exchange, place: int, expected: str, front: Front) -> None:
    await harm_answers(front, exchange, place, expected, [harm for harm in HARMS if harm is not Harm.STALL])


@REQUESTS
@with_front
async def test_a_request_that_is_harmed(exchange: Exchange, place: int, front: Front) -> None:
    await harm_requests(front, exchange, place, [harm for harm in HARMS if harm is not Harm.STALL])


@ANSWERS
@in_leaping_time
async def test_an_answer_that_stops(exchange: Exchange, place: int, expected: str) -> None:
    async with Front() as front:
        await harm_answers(front, exchange, place, expected, [Harm.STALL])


@REQUESTS
@in_leaping_time
async def test_a_request_that_stops(exchange: Exchange, place: int) -> None:
    async with Front() as front:
        await harm_requests(front, exchange, place, [Harm.STALL])


@with_front
async def test_a_replica_behind_an_unharmed_way_keeps_its_connection(front: Front) -> None:
    async with ScriptedEngine(telling(CHAT)) as engine, FaultProxy(engine.url, UNHARMED, UNHARMED) as proxy:
        front.urls["r1"] = front.urls["r2"] = proxy.url
        for _ in range(3):
            assert (await front.post(CHAT.path, CHAT.asked)).body == CHAT.body
        assert (proxy.taken, proxy.open) == (1, 1)


def connection_to(address: tuple[str, int]) -> socket.socket:
    """Return a second handle of this process's one connection to an address."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError), socket.socket(fileno=os.dup(int(entry.name))) as sock:
            if sock.getpeername() == address:
                found.append(sock.dup())
    (only,) = found
    return only


@with_front
async def test_a_host_that_vanishes_is_noticed_within_twenty_seconds_in_whatever_direction(front: Front) -> None:
    """By the kernel, whose timers are looked at here; `tests/soak/test_peers_vanished.py` waits for them."""

    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        await conversation.piece(CHAT.pieces[0])
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        with connection_to(conversation.writer.get_extra_info("sockname")) as sock:
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            told.extend(sock.getsockopt(socket.IPPROTO_TCP, option) for option in options)
        await conversation.piece(b"".join(CHAT.pieces[1:]))
        await conversation.end_stream()

    told: list[int] = []
    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        assert (await front.post(CHAT.path, CHAT.asked)).body == CHAT.body
    idle, interval, probes, unacknowledged_ms = told
    assert 0 < idle + interval * probes <= 20
    assert 0 < unacknowledged_ms <= 20_000
