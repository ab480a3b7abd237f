"""The replica of `llmshed calibrate`: what it is, whether it is idle, and that it stays so."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llmshed.errors import EngineError

from ._output import print_note
from ._replay_target import OtherCountsError, OtherTrafficError

if TYPE_CHECKING:
    from llmshed.clock import Clock
    from llmshed.engines.base import EngineInfo, ReadableEngine
    from llmshed.loadtest.client import Client
    from llmshed.tokenizing.files import EngineName, TokenizerFiles

DETECTED = ("tgi", "vllm", "llamacpp")
"""Order in which an address is asked what it is, when that was not said."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where to send, as it was typed.

    Args:
        url: address without a path.
        engine: name of the engine's adapter; None to find it out.
        tokenizer: where the model's tokenizer is.
        key: key to send; None for none.
        seed: of the prompts.
        force: whether a replica is sent to that others use, or that counts otherwise.
    """

    url: str
    engine: str | None
    tokenizer: str | None
    key: str | None
    seed: int
    force: bool


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica that was looked at and may be sent to.

    Args:
        client: open connections to it.
        info: what it tells of itself.
        files: the tokenizer that prompts are made by.
    """

    client: "Client"
    info: "EngineInfo"
    files: "TokenizerFiles"


@asynccontextmanager
async def looked_at(place: Place, clock: "Clock") -> AsyncIterator[Replica]:
    """Look at the address, open connections, and see that nobody else uses it.

    Raises:
        EngineError: nobody answers there, or no engine that can be measured.
        OtherTrafficError: it has other traffic.
        OtherCountsError: it counts a prompt otherwise than the tokenizer that was named.
        TokenizerError: the tokenizer cannot be used.
    """
    from llmshed.loadtest.client import Client
    from llmshed.loadtest.prompts import PromptMaker
    from llmshed.loadtest.wire import TextWire
    from llmshed.tokenizing.load import EMBEDDED, find

    if place.tokenizer is None:
        print_note("no --tokenizer: the embedded one is used, whose counts are those of no real model")
    files = find(place.tokenizer or EMBEDDED)
    engine, info = await _told(place)
    rules: EngineName = "tgi" if engine.name == "tgi" else "vllm"
    prompts = PromptMaker(files, rules, chat=False, seed=place.seed)
    wire = TextWire(engine, info.model_id)
    async with Client(place.url, engine, wire, prompts, clock, place.key) as client:
        if not place.force:
            await _check(client, info)
        yield Replica(client, info, files)


async def _told(place: Place) -> "tuple[ReadableEngine, EngineInfo]":
    """Return which engine answers at the address, and what it tells."""
    from llmshed.engines.registry import readable_engine
    from llmshed.loadtest.pages import read_pages

    names = DETECTED if place.engine is None else (place.engine,)
    problems = []
    for name in names:
        engine = readable_engine(name)
        pages = await read_pages(place.url, engine.description_paths, place.key)
        try:
            return engine, engine.read_description(pages)
        except EngineError as error:
            problems.append(str(error))
    if len(problems) == 1:
        raise EngineError(f"{place.url}{problems[0]}")
    raise EngineError("\n".join((f"{place.url} is no replica of {', '.join(DETECTED)}:", *problems)))


async def _check(client: "Client", info: "EngineInfo") -> None:
    from llmshed.loadtest.idle import why_busy

    busy = await why_busy(client)
    if busy is not None:
        raise OtherTrafficError(f"{client.url} is not idle: {busy}; a measurement needs it alone (--force)")
    own, counted = await client.counted_text(info.model_id)
    if counted is not None and counted != own:
        raise OtherCountsError(
            f"{client.url} counts {counted} tokens in a prompt that was made of {own}: name its tokenizer by"
            " --tokenizer, or send all the same by --force"
        )
