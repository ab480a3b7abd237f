"""A peer whose host vanishes without a word is noticed within 20 s, on the clients' side and on the replicas'."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from fakes.cable import HERE, THERE, other_host
from fakes.engine import Conversation
from fakes.front import Got
from fakes.house import house, request_bytes, until
from fakes.programs import serve, simulate
from fakes.talking_tgi import TalkingTgi

PROMISED_SECONDS = 20.0
LONG = {"inputs": "Hello", "parameters": {"max_new_tokens": 7000}}
STREAM = request_bytes("/generate_stream", LONG)
WHOLE = request_bytes("/generate", LONG)
REPLICA = ("--output-mean", "ceiling", "--step-seconds", "0.05", "--max-concurrent-requests", "512")
CONFIG = """
[server]
allow_keyless = true
[lanes.interactive]
max_output_tokens = 8000
max_residence_seconds = 1000
[upstream]
pool_idle_seconds = 0.2
[[pools]]
gross_ceiling_tokens = 36_000
release_grace_seconds = 0.05
replicas = [{{ name = "r1", url = "{}" }}]
"""
TOKEN = b'data: {"index":1,"token":{"id":5,"text":" a","logprob":-0.5,"special":false},"generated_text":null}\n\n'


@pytest.mark.soak
@pytest.mark.timeout(180)
async def test_clients_that_vanish_are_let_go(tmp_path: Path) -> None:
    """In a stream, before the first byte, in the queue, within a body, and while their connections are idle."""
    with other_host() as host, ExitStack() as sockets:
        listening = ("--listen", f"{HERE}:0")
        async with simulate(*REPLICA) as replica, serve(tmp_path, CONFIG.format(replica), *listening) as served:
            descriptors = served.program.descriptors()

            async def come(sent: bytes, answered: bytes = b"") -> None:
                loop = asyncio.get_running_loop()
                made = sockets.enter_context(host.new_socket())
                await loop.sock_connect(made, (HERE, served.port))
                await loop.sock_sendall(made, sent)
                said = b""
                while answered not in said:
                    said += await loop.sock_recv(made, 65_536)

            for _ in range(2):
                await come(STREAM, b"data:")
                await come(WHOLE)
                await come(STREAM[:-10])
                await come(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", b"\r\n\r\n")
                await come(b"")
            for _ in range(3):
                await come(STREAM)  # beyond the four that there is room for
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
                await asyncio.sleep(1.0)
                state = await _state(session, served.admin)
                assert state["live_requests"] == 4
                assert sum(queue["requests"] for pool in state["pools"] for queue in pool["queues"]) == 3
                host.cut()
                took = await _seconds_until(partial(_is_empty, session, served.admin))
            closed = await _seconds_until(partial(_has_closed, served.program.descriptors, descriptors))
            print(f"\nall requests gone after {took:.1f} s, all connections {closed:.1f} s later")  # noqa: T201 - read with -s
            assert took <= PROMISED_SECONDS
            assert took + closed <= PROMISED_SECONDS + 1.0
            ended = {line["ending"] for line in served.decisions() if line["route"] != "/v1/models"}
            assert ended == {"cancelled", "refused"}  # the latter within their bodies, for which they took too long


@pytest.mark.soak
@pytest.mark.timeout(180)
async def test_replicas_that_vanish_are_given_up() -> None:
    """In a stream, before the first byte, and while a connection to them is idle; a new one is tried for 5 s."""

    async def talk(conversation: Conversation) -> None:
        match conversation.asked.path:
            case "/generate_stream":
                await conversation.open_stream()
                await conversation.pieces_until_left(TOKEN, every_seconds=0.05)
            case "/generate" if b"silent" in conversation.asked.body:
                await conversation.peer_leaves()
            case _:
                await conversation.whole(b'{"generated_text":"yes"}')

    with other_host() as host:
        listening = host.new_socket()
        listening.bind((THERE, 0))
        engine = TalkingTgi(talk, model_id="m")
        engine.listening = listening
        async with engine:
            pool = f'tokenizer = "embedded"\nreplicas = [{{ name = "r1", url = "{engine.url}" }}]'
            settings = "[upstream]\npool_idle_seconds = 60\nprobe_interval_seconds = 3600\n"
            async with house(settings, replicas=(), pool=pool) as gate:
                asked = {"inputs": "Hello", "parameters": {"max_new_tokens": 500}}
                answers: dict[str, asyncio.Future[tuple[float, Got]]] = {}

                async def timed(path: str, inputs: str) -> tuple[float, Got]:
                    got = await gate.post(path, asked | {"inputs": inputs})
                    return time.monotonic(), got  # noqa: TID251 - the kernel's timers are what is measured

                answers["stream"] = asyncio.ensure_future(timed("/generate_stream", "Hello"))
                answers["silent"] = asyncio.ensure_future(timed("/generate", "silent"))
                await until(lambda: {asked.path for asked in engine.asked} >= {"/generate_stream", "/generate"})
                visits = gate.daemon.gateway._visits
                await until(lambda: any(visit.relayed.first_token_at is not None for visit in visits))
                await gate.post("/generate", asked)  # its connection is idle and kept
                host.cut()
                began = time.monotonic()  # noqa: TID251 - as above
                answers["kept connection"] = asyncio.ensure_future(timed("/generate", "Hello"))
                answers["new connection"] = asyncio.ensure_future(timed("/generate", "Hello"))
                ended = {name: await answer for name, answer in answers.items()}
                await until(lambda: gate.daemon.gateway.running() == 0 and gate.active_tokens() == 0)
                for name, (at, got) in ended.items():
                    print(f"\n{name}: {got.status} {got.reason} after {at - began:.1f} s", end="")  # noqa: T201 - read with -s
                    assert at - began <= PROMISED_SECONDS, name
                stream = ended["stream"][1]
                assert stream.status == 200
                assert stream.body.count(b'"error"') == 1
                assert b"upstream_error" in stream.body[stream.body.rindex(b"data:") :]
                for name in ("silent", "kept connection"):
                    assert (ended[name][1].status, ended[name][1].reason) == (502, "upstream_error")
                assert ended["new connection"][1].status == 503


async def _state(session: aiohttp.ClientSession, admin: str) -> Any:
    async with session.get(f"{admin}/admin/state") as answer:
        return await answer.json()


async def _is_empty(session: aiohttp.ClientSession, admin: str) -> bool:
    state = await _state(session, admin)
    queued = sum(queue["requests"] for pool in state["pools"] for queue in pool["queues"])
    return bool(state["live_requests"] == queued == 0)


async def _has_closed(descriptors: Callable[[], int], before: int) -> bool:
    return descriptors() <= before


async def _seconds_until(condition: Callable[[], Awaitable[bool]]) -> float:
    began = time.monotonic()  # noqa: TID251 - the kernel's timers are what is measured
    async with asyncio.timeout(120):
        while not await condition():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.1)
    return time.monotonic() - began  # noqa: TID251 - as above
