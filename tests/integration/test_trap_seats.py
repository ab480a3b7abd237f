"""Nothing is charged for long that nobody uses: not by an engine that fails, not by a request that was refused."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from fakes.house import House, house, until
from fakes.seats import STEADY
from llmshed.emulator.faults import FaultPlan

ONE_SEAT = "max_concurrent_sequences = 1\nrelease_grace_seconds = 0.001\n"
NO_QUEUE = "[lanes.interactive]\nqueue_requests = 0\n"
BRIEF = "idle_timeout_seconds = 0.02\n"
LONG = {"inputs": "Hello", "parameters": {"max_new_tokens": 1000}}
SHORT = {"inputs": "Hello", "parameters": {"max_new_tokens": 2}}
TIMES = 10


async def served(gate: House) -> None:
    """Have the one seat, which has to be free."""
    await until(lambda: gate.active_tokens() == 0)
    got = await gate.post("/generate", SHORT)
    assert got.status == 200, got.body


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        FaultPlan(stall_after_events=2, times=1),
        FaultPlan(die_after_events=2, times=1),
        FaultPlan(fail_after_events=2, times=1),
        FaultPlan(overloaded=True, times=1),
    ],
    ids=["stalled", "dead", "failed", "overloaded"],
)
async def test_an_engine_that_fails_time_and_again_leaves_the_one_seat_free(fault: FaultPlan) -> None:
    """One that leaked would have the next request answered 429 for ever."""
    async with house(NO_QUEUE + BRIEF, pool=ONE_SEAT) as gate:
        for _ in range(TIMES):
            gate.replicas[0].replica.faults.plan = fault
            await gate.post("/generate_stream", LONG)
            assert gate.decisions[-1]["ending"] == "failed"
            await served(gate)
        assert gate.daemon.gateway.driver.charged == 0


def own_quota(place: Path) -> str:
    """Return a tenant of two seats whose key is `right`."""
    keys = place / "keys"
    keys.write_text(f"sha256:{hashlib.sha256(b'right').hexdigest()}\n")
    keys.chmod(0o600)
    return f'[[tenants]]\nname = "acme"\nkeys_file = "{keys}"\nmax_concurrent_requests = 2\n'


@pytest.mark.slow
async def test_a_hundred_refused_for_a_seat_have_charged_nothing_else(tmp_path: Path) -> None:
    """The replica's seat is taken; its tokens and the tenant's own second seat are free all the while."""
    key = {"Authorization": "Bearer right"}
    async with house(NO_QUEUE + own_quota(tmp_path), replicas=(STEADY,), pool=ONE_SEAT) as gate:
        async with gate.session.post(f"{gate.data}/generate_stream", json=LONG, headers=key) as stream:
            await stream.content.readany()
            held = gate.active_tokens()
            answers = await asyncio.gather(*(gate.post("/generate", SHORT, key) for _ in range(100)))
            assert {(got.status, got.reason) for got in answers} == {(429, "concurrency_limit")}
            assert gate.active_tokens() == held
            stream.close()
        await until(lambda: gate.active_tokens() == 0)
        assert (await gate.post("/generate", SHORT, key)).status == 200
