"""How long a client bears silence, which SDKs tell unasked, bounds its wait and nothing else."""

import pytest

from fakes.clients_states import SEATS, faulty
from fakes.house import house
from fakes.seats import PATIENT, SMALL, held, small_house, stuck

CHAT = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}
SDK_DEFAULT = {"x-stainless-read-timeout": "600"}

pytestmark = pytest.mark.slow


async def test_the_default_of_an_sdk_makes_no_long_answer_infeasible() -> None:
    long = {**CHAT, "max_tokens": 4001}
    async with small_house("") as gate, held(gate):
        for body in (long, {**long, "stream": True}):
            got = await gate.post("/v1/chat/completions", body, SDK_DEFAULT)
            assert (got.status, got.reason) == (429, "token_budget_exhausted")
        longer = {**CHAT, "max_tokens": 4002}  # another request, and no repeat of those that were told to wait
        own = await gate.post("/v1/chat/completions", longer, {"x-llmshed-deadline-ms": "600000"})
        assert (own.status, own.reason) == (429, "deadline_infeasible")
        assert "Asked for: the whole answer within 600 s." in own.json()["error"]["message"]


async def test_nobody_waits_for_longer_than_its_client_does() -> None:
    async with small_house(PATIENT, SEATS) as gate, stuck(gate, 8):
        got = await gate.post("/generate", SMALL, {"x-stainless-read-timeout": "0.01"})
        assert (got.status, got.reason) == (429, "deadline_infeasible")
        assert "Asked for: its beginning within 0.01 s." in got.json()["error"]


@pytest.mark.parametrize(("path", "body"), [("/generate", SMALL), ("/generate_stream", SMALL)])
async def test_no_engine_is_held_to_it(path: str, body: object) -> None:
    async with house() as gate:
        await faulty(first_byte_delay_seconds=0.5)(gate)
        got = await gate.post(path, body, {"x-stainless-read-timeout": "0.2"})
        assert got.status == 200
        assert (gate.decisions[-1]["deadline_seconds"], gate.decisions[-1]["first_token_seconds"]) == (None, None)
