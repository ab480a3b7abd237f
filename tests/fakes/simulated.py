"""A simulated replica on a free port with steps short enough for tests."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import aiohttp
import orjson

from llmshed.emulator import Emulator, EmulatorSettings
from llmshed.emulator.vocabulary import Vocabulary
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.tokenizing.load import find

QUICK = StepTimes(step_seconds=0.0005, seconds_per_prefill_token=0, seconds_per_decoding_sequence=0)


@cache
def embedded_vocabulary() -> Vocabulary:
    """Return the embedded vocabulary, loaded once for all tests."""
    return Vocabulary(find("embedded"))


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer, read whole."""

    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """Return the JSON of each data event; `[DONE]` as text."""
        lines = [line for line in self.body.split(b"\n\n") if line.startswith(b"data:")]
        payloads = [line.removeprefix(b"data:").strip() for line in lines]
        return [payload.decode() if payload == b"[DONE]" else orjson.loads(payload) for payload in payloads]


@dataclass(frozen=True, slots=True)
class Site:
    """A running replica and a client."""

    url: str
    emulator: Emulator
    session: aiohttp.ClientSession

    async def post(self, path: str, body: Any, **headers: str) -> Answer:
        data = io.BytesIO(body if isinstance(body, bytes) else orjson.dumps(body))
        sent = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
        async with self.session.post(self.url + path, data=data, headers=sent) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, path: str) -> Answer:
        async with self.session.get(self.url + path) as response:
            return Answer(response.status, response.headers, await response.read())

    async def state(self) -> Any:
        return (await self.get("/_simulate/state")).json


@asynccontextmanager
async def simulated(parameters: dict[str, Any] | None = None, **settings: Any) -> AsyncIterator[Site]:
    """Run a replica whose answers run to their ceiling unless the settings say otherwise."""
    given = {"output_mean_tokens": None, "drain_seconds": 0.2, **settings}
    quick = replace(ReplicaParameters(step_times=QUICK), **(parameters or {}))
    shared = None if "tokenizer" in settings else embedded_vocabulary()
    emulator = Emulator(EmulatorSettings(parameters=quick, **given), vocabulary=shared)
    url = await emulator.start()
    try:
        async with aiohttp.ClientSession() as session:
            yield Site(url, emulator, session)
    finally:
        await emulator.stop()
        assert emulator.replica.engine.check() == ()
