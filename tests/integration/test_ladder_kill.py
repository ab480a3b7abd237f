"""A gateway that is killed while a rung is held: what was answered is there after the next start."""

import json
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from fakes.programs import serve

pytestmark = pytest.mark.slow

TOML = """\
[ladder]
state_file = "held.json"
audit_file = "audit.jsonl"
[[pools]]
ladder = "source"
[[pools.replicas]]
name = "r1"
url = "simulated:"
"""


async def asked(admin: str, path: str, body: object = None) -> dict[str, Any]:
    method = "GET" if body is None else "POST"
    async with aiohttp.request(method, f"{admin}/admin/ladder{path}", json=body) as answer:
        assert answer.status == 200
        told: dict[str, Any] = await answer.json()
        return told


async def test_kill_9_in_the_middle_of_a_hold(tmp_path: Path) -> None:
    async with serve(tmp_path, TOML) as gateway:
        for rung in ("stop-bulk", "shed-lowest"):
            await asked(gateway.admin, "/trigger", {"rung": rung, "for_seconds": 900, "reason": "incident"})
        gateway.program.signal(signal.SIGKILL)  # before anything else: the answer is all that the operator has
        await gateway.program.ended()

    (held,) = json.loads((tmp_path / "held.json").read_bytes())["holds"]
    assert held["rung"] == "shed-lowest"
    audit = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_bytes().splitlines()]
    assert [line["rung"] for line in audit if line["what"] == "trigger"] == ["stop-bulk", "shed-lowest"]

    async with serve(tmp_path, TOML) as gateway:
        (pool,) = (await asked(gateway.admin, ""))["pools"]
        assert pool["hold"]["rung"] == "shed-lowest"
        assert 840 < pool["hold"]["remaining_seconds"] < 900
        assert pool["rung"] == 2
        entries = (await asked(gateway.admin, "/history"))["entries"]
        assert [entry["what"] for entry in entries[:2]] == ["restored", "step"]
