"""Canaries through a gateway whose own code breaks at every step: the prompt is in the exception and in no line."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import aiohttp
import pytest

from fakes.house import House, house
from fakes.tenants import bearer, tenant
from llmshed.gateway.admin import handlers
from llmshed.gateway.door import door, generate, reading
from llmshed.gateway.relay.relay import Relay
from llmshed.observability.logs import configure_logging

MARK = "kanarek"
"""Part of every canary; no file, word or name of the package has it."""
KEY = f"{MARK}-key"
BODY = {
    "model": "tgi",
    "messages": [
        {"role": "system", "content": f"{MARK} system"},
        {"role": "user", "content": [{"type": "text", "text": f"{MARK} text"}], "name": f"{MARK}name"},
        {"role": "assistant", "content": f"{MARK} answer", "reasoning_content": f"{MARK} thought"},
        {"role": "user", "content": f"{MARK} more"},
    ],
    "tools": [{"type": "function", "function": {"name": MARK, "description": MARK, "parameters": {MARK: {}}}}],
    "stop": [f"{MARK} stop"],
    "user": f"{MARK} user",
    "metadata": {MARK: MARK},
    "prompt_cache_key": f"{MARK}-cache",
    "max_tokens": 2,
}
HEADERS = {
    **bearer(KEY),
    "idempotency-key": f"{MARK}-operation",
    "x-llmshed-session": f"{MARK}-session",
    "x-request-id": f"{MARK} is no id",
    "x-amzn-trace-id": f"Root={MARK}",
    "cookie": f"session={MARK}",
    "baggage": f"user={MARK}",
    "user-agent": f"{MARK}/1",
}
STEPS = (
    (door, "check_headers"),
    (reading, "parse_body"),
    (reading, "_understand"),
    (generate, "read_wishes"),
    (generate, "count_call"),
    (generate, "_request"),
    (generate, "_job"),
    (Relay, "serve"),
    (handlers, "classified"),
)
"""Where the gateway's own code breaks, each found by the name under which it is called."""


@pytest.fixture
def lines() -> Iterator[list[bytes]]:
    """Everything that is logged at debug level, with the root logger put back afterwards."""
    root = logging.getLogger()
    handlers_before, level = root.handlers[:], root.level
    written: list[bytes] = []
    configure_logging("debug", written.append)
    yield written
    root.handlers[:] = handlers_before
    root.setLevel(level)


def _break(*given: Any, **named: Any) -> NoReturn:
    """Raise what quotes everything that is known here, with a cause that does so too."""
    raise ValueError(f"{MARK} {BODY} {given!r} {named!r}") from KeyError(f"{MARK} {BODY}")


@pytest.mark.parametrize(("where", "name"), STEPS, ids=lambda part: part if isinstance(part, str) else "")
async def test_a_step_that_breaks_tells_nobody_of_the_request(
    where: object, name: str, lines: list[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with house(tenant(tmp_path, MARK, "").replace(f'name = "{MARK}"', 'name = "acme"')) as gate:
        monkeypatch.setattr(where, name, _break)
        path, admin = ("/admin/classify", True) if where is handlers else ("/v1/chat/completions", False)
        body = {"route": "/v1/chat/completions", "body": BODY} if admin else BODY
        answer = await gate.ask("POST", path, admin=admin, json=body, headers=HEADERS)
        assert (answer.status, answer.headers["x-llmshed-reason"]) == (500, "internal_error")
        assert MARK not in answer.body.decode()
        monkeypatch.undo()
        told = await _told(gate)
    written = b"".join(lines)
    assert b"request_crashed" in written  # otherwise its silence would say little
    assert b"ValueError" in written
    keys_file = str(tmp_path / MARK)  # named after the key, which is no secret
    assert MARK not in written.decode().replace(keys_file, "").lower()
    assert MARK not in (told + repr(gate.decisions)).lower()


async def _told(gate: House) -> str:
    """Return what an operator reads."""
    paths = ("/metrics", "/admin/decisions?n=100", "/admin/state", "/readyz?verbose", f"/admin/decisions/{'x' * 20}")
    return "\n".join([(await gate.ask("GET", path, admin=True)).body.decode() for path in paths])


async def test_refusals_of_the_operators_own_questions_repeat_nothing(lines: list[bytes], tmp_path: Path) -> None:
    questions: tuple[Any, ...] = (
        {"input_tokens": MARK}, {"input_tokens": 1, "model": MARK}, {"input_tokens": 1, "tenant": MARK},
        {"input_tokens": 1, "intent": MARK}, {"route": MARK, "body": {}},
        {"route": "/generate", "body": {"inputs": [MARK]}},
    )  # fmt: skip
    async with house(tenant(tmp_path, "acme")) as gate:
        for question in questions:
            answer = await gate.ask("POST", "/admin/classify", admin=True, json=question, headers=HEADERS)
            assert answer.status in {400, 404}
            assert MARK not in answer.body.decode()
        for path in (f"/{MARK}", f"/admin/decisions/{MARK}", f"/admin/decisions?n={MARK}", f"/metrics?{MARK}={MARK}"):
            answer = await gate.ask("GET", path, admin=True, headers=HEADERS)
            assert MARK not in answer.body.decode()
        async with aiohttp.ClientSession() as session, session.get(f"{gate.data}/{MARK}") as refused:
            assert refused.status == 401
        told = await _told(gate)
    assert MARK not in (told + repr(gate.decisions) + b"".join(lines).decode()).lower()
