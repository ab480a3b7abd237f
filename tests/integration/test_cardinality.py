"""Names that clients choose: they add no series to a scrape, and what is remembered of them has a bound in bytes."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from fakes.house import House, house
from fakes.pools import POLICY
from llmshed.admission.echo import MOST_REMEMBERED as MOST_REFUSALS
from llmshed.admission.echo import EchoBook
from llmshed.admission.reasons import Reason
from llmshed.gateway.conversations import MOST_REMEMBERED as MOST_TURNS
from llmshed.gateway.conversations import Conversations, Turns
from llmshed.gateway.door.unchanged import MOST_PROMPTS, RefusedSize, RefusedSizes
from llmshed.gateway.door.unchanged import MOST_REMEMBERED as MOST_SIZES

DISTINCT = 40
MEBIBYTE = 1 << 20


async def _names_of_series(gate: House) -> set[str]:
    page = (await gate.ask("GET", "/metrics", admin=True)).body
    assert len(page) < 1_000_000
    return {line.rpartition(" ")[0] for line in page.decode().splitlines() if line and not line.startswith("#")}


async def _ask_under_new_names(gate: House, number: int) -> None:
    name = f"name-{number}"
    headers = {"x-request-id": name, "idempotency-key": name, "x-llmshed-session": name, "user-agent": name}
    chat = {"messages": [{"role": "user", "content": name}], "max_tokens": 1, "user": name, "prompt_cache_key": name}
    served = await gate.post("/v1/chat/completions", chat, headers)
    unknown = await gate.post("/v1/chat/completions", {**chat, "model": name}, headers)
    nowhere = await gate.post(f"/v1/{name}?{name}={name}", chat, headers)
    method = await gate.ask("PUT", "/generate", headers=headers)
    large = await gate.post("/v1/completions", {"prompt": name, "max_tokens": 1_000_000_000}, headers)
    assert [answer.status for answer in (served, unknown, nowhere, method, large)] == [200, 404, 404, 405, 413]


async def test_requests_under_ever_new_names_add_no_series() -> None:
    async with house() as gate:
        await _ask_under_new_names(gate, 0)
        before = await _names_of_series(gate)
        for number in range(1, DISTINCT):
            await _ask_under_new_names(gate, number)
        assert await _names_of_series(gate) == before
    assert len(before) <= 5_000


def _refusals() -> EchoBook:
    book = EchoBook()
    for number in range(MOST_REFUSALS + MOST_REFUSALS // 10):
        book.refused(f"{number:032x}", Reason.QUEUE_FULL, number + 5.0, float(number % 7))
    assert len(book) <= MOST_REFUSALS
    return book


def _turns() -> Conversations:
    book = Conversations()
    for number in range(MOST_TURNS + MOST_TURNS // 10):
        book.finished(f"{number:032x}", Turns(f"{number:032x}", ()), float(number % 7))
    assert len(book) <= MOST_TURNS
    return book


def _sizes() -> RefusedSizes:
    book = RefusedSizes()
    for number in range(MOST_SIZES + MOST_SIZES // 10):
        prompts = tuple(range(1_000 + number, 1_000 + number + MOST_PROMPTS))
        book.note(f"{number:032x}", RefusedSize(prompts), POLICY, 0.0)
    assert len(book) <= MOST_SIZES
    return book


@contextmanager
def _traced() -> Iterator[None]:
    tracemalloc.start(1)
    try:
        yield
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fill", "most_bytes"),
    [(_refusals, 40 * MEBIBYTE), (_turns, 40 * MEBIBYTE), (_sizes, 20 * MEBIBYTE)],
    ids=["refusals", "turns", "sizes"],
)
def test_what_is_remembered_of_clients_has_a_bound_in_bytes(fill: Callable[[], object], most_bytes: int) -> None:
    with _traced():
        before, _ = tracemalloc.get_traced_memory()
        book = fill()
        after, _ = tracemalloc.get_traced_memory()
    assert book is not None
    assert after - before < most_bytes
