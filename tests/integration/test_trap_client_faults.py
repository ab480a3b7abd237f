"""A client's own faults, told by the engine, are the client's: no replica is suspected, left out or blamed for them."""

import asyncio
from typing import Any

import orjson
import pytest

from fakes.engine import Conversation
from fakes.front import Got
from fakes.house import House, house
from fakes.tgi import WordTgi

ASK = {"inputs": "Hello", "parameters": {"max_new_tokens": 2}}
TIMES = 1_000
AT_ONCE = 50
STATUSES = {
    400: "400 Bad Request",
    413: "413 Payload Too Large",
    422: "422 Unprocessable Entity",
}


class Complaining(WordTgi):
    """Refuses every generating request with one status, as the request's own fault."""

    def __init__(self, line: str) -> None:
        super().__init__()
        self.counts = False
        self.line = line

    async def _answer(self, conversation: Conversation) -> None:
        if conversation.asked.path != "/generate":
            await super()._answer(conversation)
            return
        told = {"error": f"not like this: {self.line}", "error_type": "validation"}
        await conversation.whole(orjson.dumps(told), self.line)


def replica_up(gate: House) -> list[bool]:
    return [replica.up for replica in gate.daemon.gateway.driver.state().replicas]


async def answers(gate: House, number: int, body: dict[str, Any]) -> list[Got]:
    got: list[Got] = []
    for _ in range(0, number, AT_ONCE):
        got += await asyncio.gather(*(gate.post("/generate", body) for _ in range(min(number, AT_ONCE))))
    return got


@pytest.mark.slow
@pytest.mark.parametrize("status", sorted(STATUSES))
async def test_a_thousand_complaints_of_an_engine_about_its_clients_leave_it_in_service(status: int) -> None:
    async with Complaining(STATUSES[status]) as engine:
        pool = f'tokenizer = "embedded"\nreplicas = [{{ name = "r1", url = "{engine.url}" }}]\n'
        async with house(pool=pool, replicas=()) as gate:
            met = engine.asked_for("/info")
            for got in await answers(gate, TIMES // len(STATUSES), ASK):
                assert got.status == status
                assert STATUSES[status] in got.json()["error"]
                assert got.headers["x-should-retry"] == "false"
                assert "Retry-After" not in got.headers
            assert replica_up(gate) == [True]
            assert engine.asked_for("/info") == met, "it was never suspected, so it was not met again"
            scrape = (await gate.ask("GET", "/metrics", admin=True)).body.decode()
            errors = [line for line in scrape.splitlines() if line.startswith("llmshed_upstream_errors_total{")]
            assert {line.rpartition(" ")[2] for line in errors} <= {"0.0"}, errors


async def test_what_is_too_long_is_refused_before_an_engine_is_asked() -> None:
    async with Complaining(STATUSES[413]) as engine:
        pool = f'tokenizer = "embedded"\nreplicas = [{{ name = "r1", url = "{engine.url}" }}]\n'
        async with house(pool=pool, replicas=()) as gate:
            got = await gate.post("/generate", {**ASK, "inputs": "word " * 9_000})
            assert (got.status, got.reason) == (413, "context_limit")
            assert engine.asked_for("/generate") == 0
