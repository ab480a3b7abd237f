"""Signals that tell a running daemon to say something."""

import signal
from pathlib import Path

import pytest

from fakes.programs import serve

EMBEDDED = '[[pools]]\nreplicas = [{ name = "r1", url = "simulated:" }, { name = "r2", url = "simulated:" }]\n'


@pytest.mark.slow
async def test_sigusr1_writes_the_whole_state_to_the_log(tmp_path: Path) -> None:
    async with serve(tmp_path, EMBEDDED) as served:
        await served.program.until(lambda: len(served.program.logged("replica_up")) == 2)
        served.program.signal(signal.SIGUSR1)
        (line,) = await served.program.until(lambda: served.program.logged("state"))
    state = line["state"]
    assert sorted(replica["name"] for replica in state["replicas"]) == ["r1", "r2"]
    assert set(state["replicas"][0]["lanes"]) <= {"interactive", "bulk"}
    assert (state["ready"], state["live_requests"], state["violations"]) == (True, 0, [])
