"""What `llmshed replay` sends to: what stands there, and whether it may be sent to."""

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import typer

from llmshed.errors import EngineError, ExitCode, LlmshedError

from ._output import print_note

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from llmshed.clock import Clock
    from llmshed.loadtest.client import Client
    from llmshed.loadtest.prompts import PromptMaker
    from llmshed.tokenizing.files import EngineName


class OtherTrafficError(LlmshedError):
    """The replica serves others, whom a replay would hurt and who would spoil its figures."""

    exit_code = ExitCode.TEMPORARY


class OtherCountsError(LlmshedError):
    """The target counts prompts otherwise than they were made."""

    exit_code = ExitCode.BAD_DATA


@dataclass(frozen=True, slots=True)
class Address:
    """Where to send, as it was typed; None where it was left open.

    Args:
        url: address without a path.
        is_gateway: what stands there.
        engine: name of the engine's adapter.
        api: form of the requests.
        model: model to ask for.
        tokenizer: where the model's tokenizer is.
        key: key to send.
        force: whether a replica is sent to that others use, or that counts otherwise.
    """

    url: str
    is_gateway: bool | None
    engine: Literal["tgi", "vllm", "llamacpp"]
    api: Literal["text", "chat"] | None
    model: str | None
    tokenizer: str | None
    key: str | None
    force: bool


@dataclass(frozen=True, slots=True)
class Reached:
    """A target that was looked at and may be sent to.

    Args:
        client: open connections to it.
        is_gateway: whether it is a gateway.
        model: model that is asked for.
        chat: whether requests are chats.
    """

    client: "Client"
    is_gateway: bool
    model: str
    chat: bool


@asynccontextmanager
async def reached(address: Address, clock: "Clock", seed: int) -> "AsyncIterator[Reached]":
    """Look at the address and open connections to it.

    Raises:
        EngineError: nobody answers there, or not the engine that was named.
        typer.BadParameter: chats are to be sent to an engine that is not sent any.
        OtherTrafficError: the replica has other traffic.
        OtherCountsError: the replica counts a prompt otherwise.
        TokenizerError: the tokenizer cannot be used.
    """
    from llmshed.engines.registry import readable_engine
    from llmshed.loadtest.client import Client
    from llmshed.loadtest.target import look_at
    from llmshed.loadtest.wire import ChatWire, TextWire

    target = await look_at(address.url, address.key)
    is_gateway = target.is_gateway if address.is_gateway is None else address.is_gateway
    model = address.model or target.model or address.engine
    chat = is_gateway if address.api is None else address.api == "chat"
    if chat and address.engine != "tgi":
        raise typer.BadParameter(f"--engine {address.engine}: chats are sent as tgi takes them; add --api text")
    if target.is_gateway and not is_gateway:
        raise EngineError(f"{address.url} is a gateway, which tells nothing of a replica: leave out --replica")
    engine = readable_engine(address.engine)
    wire = ChatWire(model) if chat else TextWire(engine, model)
    prompts = _prompts(address, chat=chat, seed=seed)
    async with Client(address.url, engine, wire, prompts, clock, address.key) as client:
        if not is_gateway:
            await _check_replica(client, address, model)
        yield Reached(client, is_gateway, model, chat)


def _prompts(address: Address, *, chat: bool, seed: int) -> "PromptMaker":
    from llmshed.loadtest.prompts import PromptMaker
    from llmshed.tokenizing.load import EMBEDDED, find

    if address.tokenizer is None:
        print_note("no --tokenizer: the embedded one is used, whose counts are those of no real model")
    rules: EngineName = "tgi" if address.engine == "tgi" else "vllm"
    return PromptMaker(find(address.tokenizer or EMBEDDED), rules, chat=chat, seed=seed)


async def _check_replica(client: "Client", address: Address, model: str) -> None:
    from llmshed.loadtest.idle import why_busy

    try:
        pages = {path: await client.page(path) for path in client.engine.description_paths}
        client.engine.read_description(pages)
    except EngineError as error:
        raise EngineError(f"{address.url} is no gateway and no replica of {address.engine}: {error}") from None
    if address.force:
        return
    busy = await why_busy(client)
    if busy is not None:
        raise OtherTrafficError(
            f"{address.url} is not idle: {busy}; a replay would hurt others, who would spoil its figures (--force)"
        )
    await _check_count(client, address, model)


async def _check_count(client: "Client", address: Address, model: str) -> None:
    """See that the replica counts a prompt as it was made, where it counts at all."""
    tokens, counted = await client.counted_text(model)
    if counted is not None and counted != tokens:
        raise OtherCountsError(
            f"{address.url} counts {counted} tokens in a prompt that was made of {tokens}: name its tokenizer by"
            " --tokenizer, or send all the same by --force"
        )
