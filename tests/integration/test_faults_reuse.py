"""A replica that closes its idle connections at any moment, as uvicorn does after 5 s, fails no client's request."""

import asyncio
import random

import pytest

from fakes.engine import Conversation
from fakes.house import house
from fakes.loops import on_both_loops
from fakes.talking_tgi import TalkingTgi

ASKED = {"inputs": "Hello", "parameters": {"max_new_tokens": 5}}
ANSWER = b'{"generated_text":"yes"}'
MOST_IDLE_SECONDS = 0.02
"""Of the replica as of its clients, so that each close may meet a request that is on its way."""


@pytest.mark.parametrize(
    ("requests", "clients"),
    [
        pytest.param(300, 10, marks=pytest.mark.slow),
        pytest.param(10_000, 40, marks=[pytest.mark.soak, pytest.mark.timeout(300)]),
    ],
)
@on_both_loops
async def test_a_replica_that_closes_idle_connections_fails_nobody(requests: int, clients: int) -> None:
    draw = random.Random(20)  # noqa: S311 - a seed, so that a failure can be repeated
    answers: list[tuple[int, bytes]] = []

    async def talk(conversation: Conversation) -> None:
        await conversation.whole(ANSWER)
        idle_seconds = draw.uniform(0.0, MOST_IDLE_SECONDS)
        asyncio.get_running_loop().call_later(idle_seconds, conversation.hang_up_if_idle)

    async with TalkingTgi(talk, model_id="m") as engine:
        pool = f'tokenizer = "embedded"\nreplicas = [{{ name = "r1", url = "{engine.url}" }}]'
        async with house(replicas=(), pool=pool) as gate:

            async def client() -> None:
                for _ in range(requests // clients):
                    got = await gate.post("/generate", ASKED)
                    answers.append((got.status, got.body))
                    await asyncio.sleep(draw.uniform(0.0, MOST_IDLE_SECONDS))

            before = engine.connections
            await asyncio.gather(*(client() for _ in range(clients)))
            made = engine.connections - before
        assert set(answers) == {(200, ANSWER)}
        assert engine.asked_for("/generate") == requests == len(answers)
        print(f"\n{requests:,} requests over {made:,} connections")  # noqa: T201 - read with -s
        assert clients < made < requests
