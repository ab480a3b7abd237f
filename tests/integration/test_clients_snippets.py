"""The code of docs/clients.md, taken from the page and run against a gateway that is full and then is not."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from fakes.clients_states import NOBODY_WAITS, SEATS
from fakes.house import House, until
from fakes.seats import SMALL, held, small_house, stuck
from llmshed.admission.request import Request
from llmshed.admission.verdict import Verdict
from llmshed.gateway.ticket import Ticket

Ask = Callable[[House, float], Awaitable[str]]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("foreign_sockets")]


def code(page: Path, title: str) -> dict[str, Any]:
    """Return what the example of a section defines, with the helper that all of them use."""
    sections = re.split(r"^##+ (.*)\n", page.read_text(), flags=re.MULTILINE)
    texts = dict(zip(sections[1::2], sections[2::2], strict=True))
    defined: dict[str, Any] = {}
    for section in ("What comes back by itself, and what does not", title):
        (block,) = re.findall(r"^```python\n(.*?)^```$", texts[section], flags=re.MULTILINE | re.DOTALL)
        exec(compile(block, f"{page.name}: {section}", "exec"), defined)  # noqa: S102 - the page's own code
    return defined


@pytest.fixture(params=["requests", "aiohttp", "huggingface_hub"])
def ask(request: pytest.FixtureRequest, repository: Path) -> Ask:
    """One example, asked for two tokens within a total time; returns the text of the answer."""
    pytest.importorskip(request.param, reason="extra `clients` is not installed")
    generate = code(repository / "docs" / "clients.md", request.param)["generate"]

    async def with_requests(gate: House, total_seconds: float) -> str:
        got = await asyncio.to_thread(generate, gate.data, SMALL, total_seconds)
        told: dict[str, str] = got.json()
        if not got.ok:
            raise RuntimeError(told["error"])
        return told["generated_text"]

    async def with_aiohttp(gate: House, total_seconds: float) -> str:
        async with aiohttp.ClientSession() as session:
            return str((await generate(session, gate.data, SMALL, total_seconds))["generated_text"])

    async def with_hub(gate: House, total_seconds: float) -> str:
        return str(await asyncio.to_thread(generate, gate.data, "Hello", total_seconds, max_new_tokens=2))

    asks: dict[str, Ask] = {"requests": with_requests, "aiohttp": with_aiohttp, "huggingface_hub": with_hub}
    return asks[request.param]


@asynccontextmanager
async def watched() -> AsyncIterator[tuple[House, list[Request]]]:
    """Run a gateway in which nobody waits, and keep what reaches its core."""
    async with small_house(NOBODY_WAITS, SEATS) as gate:
        seen: list[Request] = []
        admit = gate.daemon.gateway.driver.admit

        async def watch(request: Request, on_queued: Callable[[Verdict], None] | None = None) -> Ticket | Verdict:
            seen.append(request)
            return await admit(request, on_queued)

        gate.daemon.gateway.driver.admit = watch  # type: ignore[method-assign]  # the driver of one test
        yield gate, seen


async def test_it_comes_back_after_the_wait_under_one_name_and_is_served(ask: Ask) -> None:
    async with watched() as (gate, seen):
        async with stuck(gate, 8):
            del seen[:]
            answers = [asyncio.ensure_future(ask(gate, 30.0)) for _ in range(2)]
            await until(lambda: len({request.fingerprint for request in seen}) == 2)
        assert all([await answer for answer in answers])
        lines = [line for line in gate.decisions if line["streamed"] is False]
    tries = Counter(request.fingerprint for request in seen)
    assert len(tries) == 2, "each operation has its own key, and all its tries the same"
    assert min(tries.values()) >= 2
    assert {line["arrival"] for line in lines if line["status"] == 429} <= {"first", "repeat"}, "none came early"
    assert [line["arrival"] for line in lines if line["status"] == 200] == ["repeat"] * 2
    assert all(request.deadline is not None for request in seen)


async def test_it_gives_up_at_once_where_no_wait_helps_and_in_time_where_one_would_be_too_long(ask: Ask) -> None:
    async with small_house() as gate, held(gate):
        with pytest.raises(Exception, match="deadline_infeasible"):
            await ask(gate, 30.0)
    assert [line["status"] for line in gate.decisions] == [429, 200]  # the second is the stream that filled it
    async with watched() as (gate, _), stuck(gate, 8):
        with pytest.raises(Exception, match="concurrency_limit"):
            await ask(gate, 0.9)
        assert [line["status"] for line in gate.decisions] == [429]
