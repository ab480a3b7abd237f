"""Short requests to a simulated replica on each of TGI's routes, and by how much its metrics move."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fakes.simulated import Answer, Site

HI = [{"role": "user", "content": "Hello"}]


async def native(site: Site, inputs: str = "Hello", **parameters: Any) -> Answer:
    return await site.post("/generate", {"inputs": inputs, "parameters": {"max_new_tokens": 4, **parameters}})


async def stream(site: Site, **parameters: Any) -> Answer:
    return await site.post("/generate_stream", {"inputs": "Hello", "parameters": {"max_new_tokens": 4, **parameters}})


async def chat(site: Site, **fields: Any) -> Answer:
    return await site.post("/v1/chat/completions", {"messages": HI, "max_tokens": 4, **fields})


async def complete(site: Site, **fields: Any) -> Answer:
    return await site.post("/v1/completions", {"prompt": "Hello", "max_tokens": 4, **fields})


async def vertex(site: Site) -> Answer:
    instance = {"inputs": "Hello", "parameters": {"max_new_tokens": 4}}
    return await site.post("/vertex", {"instances": [instance, instance]})


async def samples(site: Site) -> dict[str, float]:
    """Return every sample of the replica's metrics, by the text before its value."""
    lines = (await site.get("/metrics")).body.decode().splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if line and not line.startswith("#")]
    return {name: float(value) for name, value in pairs}


async def moved(site: Site, what: Callable[[], Awaitable[Any]]) -> dict[str, float]:
    """Return by how much each sample moved while something was done; those that did not are left out."""
    before = await samples(site)
    await what()
    after = await samples(site)
    changes = {name: value - before.get(name, 0.0) for name, value in after.items()}
    return {name: change for name, change in changes.items() if change}


@asynccontextmanager
async def running(site: Site) -> AsyncIterator[None]:
    """Keep a long stream running meanwhile."""
    body = {"inputs": "Hello", "parameters": {"max_new_tokens": 8000}}
    async with site.session.post(f"{site.url}/generate_stream", json=body) as response:
        await response.content.readline()
        yield
        response.close()
