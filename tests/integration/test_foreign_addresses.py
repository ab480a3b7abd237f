"""Addresses in requests, in an engine's answers and in the environment: the gateway connects to none of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fakes.engine import Conversation
from fakes.house import House, house
from fakes.talking_tgi import TalkingTgi

FIELDS = ("api_base", "base_url", "callback_url", "webhook")
HEADERS = ("x-forwarded-host", "x-original-url", "x-rewrite-url", "x-upstream", "x-llmshed-replica", "forwarded", "via")


class Bait:
    """An address that nobody may connect to."""

    def __init__(self) -> None:
        self.visitors = 0
        self.url = ""

    async def _visited(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.visitors += 1
        writer.close()

    @asynccontextmanager
    async def laid(self) -> AsyncIterator["Bait"]:
        async with await asyncio.start_server(self._visited, "127.0.0.1", 0) as server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield self


def bodies() -> list[tuple[str, dict[str, Any]]]:
    native = {"inputs": "Hello", "parameters": {"max_new_tokens": 1}}
    chat = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
    plain = {"prompt": "Hello", "max_tokens": 1}
    return [
        ("/generate", native), ("/", native), ("/tokenize", {"inputs": "Hello"}),
        ("/v1/chat/completions", chat), ("/v1/completions", plain), ("/chat_tokenize", chat),
    ]  # fmt: skip


async def answers(gate: House, url: str) -> set[int]:
    statuses = {(await gate.post(path, {**body, name: url})).status for path, body in bodies() for name in FIELDS}
    native = dict(bodies())["/generate"]
    inside = {"inputs": "Hello", "parameters": {**native["parameters"], "api_base": url}}
    return statuses | {(await gate.post("/generate", inside)).status}


async def test_an_address_in_a_body_or_a_header_is_refused_or_means_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Bait().laid() as bait:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, bait.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        async with house() as gate:
            assert await answers(gate, bait.url) == {400}
            for path, body in bodies():
                assert (await gate.post(path, body, dict.fromkeys(HEADERS, bait.url))).status == 200
            chat = dict(bodies())["/v1/chat/completions"]
            assert (await gate.post("/v1/chat/completions", {**chat, "metadata": {"api_base": bait.url}})).status == 200
        assert bait.visitors == 0


async def test_an_image_is_never_fetched_and_a_redirect_never_followed() -> None:
    async def talk(conversation: Conversation) -> None:
        where = f"Location: {bait.url}/generate\r\n"
        await conversation.whole(b"", "307 Temporary Redirect", where)

    async with Bait().laid() as bait, TalkingTgi(talk) as engine:
        replica = f'[[pools.replicas]]\nname = "redirects"\nurl = "{engine.url}"\n'
        async with house(replicas=(), pool=f'tokenizer = "embedded"\nimage_tokens = 100\n{replica}') as gate:
            image = {"type": "image_url", "image_url": {"url": f"{bait.url}/cat.png"}}
            chat = {"messages": [{"role": "user", "content": [image]}], "max_tokens": 1}
            answer = await gate.post("/v1/chat/completions", chat)
            assert (answer.status, answer.headers["x-llmshed-reason"]) == (502, "upstream_error")
            assert bait.url not in answer.body.decode()
            marked = {"inputs": f"![]({bait.url}/cat.png) What is it?", "parameters": {"max_new_tokens": 1}}
            assert (await gate.post("/generate", marked)).status == 502
            await gate.post("/tokenize", {"inputs": marked["inputs"]})
        assert len(engine.asked) >= 2
        assert bait.visitors == 0
