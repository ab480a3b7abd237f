"""What a test asks of the ladder of a running gateway, over its admin listener, and finds in its files."""

import json
from pathlib import Path
from typing import Any

from fakes.house import House


def files(folder: Path) -> str:
    return f'[ladder]\nstate_file = "{folder}/held.json"\naudit_file = "{folder}/audit.jsonl"\n'


async def asked(gate: House, path: str, body: object = None, status: int = 200, **more: Any) -> dict[str, Any]:
    method = "GET" if body is None else "POST"
    got = await gate.ask(method, f"/admin/ladder{path}", admin=True, json=body, **more)
    assert got.status == status, got.body
    answer: dict[str, Any] = got.json()
    return answer


def audited(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "audit.jsonl").read_text("utf-8").splitlines()]


def written(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def standing(gate: House) -> dict[str, Any]:
    (pool,) = (await asked(gate, ""))["pools"]
    found: dict[str, Any] = pool
    return found


async def settled(gate: House) -> None:
    """Wait until all that was heard is written."""
    await gate.daemon.gateway.ladder_book.close()
