"""Whether the gateway counts as the engine does: probe prompts, counted here and by the engine's own routes."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, assert_never

from llmshed.engines.base import Call, Engine, Route, UpstreamFault
from llmshed.errors import EngineError, PromptError
from llmshed.gateway.relay.upstream import UpstreamClient, ask
from llmshed.tokenizing.base import PromptCounter
from llmshed.tokenizing.probes import PROBES
from llmshed.tokenizing.prompts import ChatPrompt, IdsPrompt, Prompt, TextPrompt


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One probe that the engine counts otherwise; None where that side cannot count it at all."""

    probe: str
    counted_tokens: int | None
    engine_tokens: int | None

    def __str__(self) -> str:
        return f"{self.probe}: {_told(self.counted_tokens)} here, {_told(self.engine_tokens)} by the engine"


class KeyAskedError(EngineError):
    """A replica lets nobody in without a key of its own, so that no request could be served there."""


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """What the self-check found.

    Args:
        compared: number of probes that both sides counted or both refused.
        mismatches: probes on which the two differ.
        unverified: why some probes could not be compared, one sentence each; older engines lack a route.
    """

    compared: int
    mismatches: tuple[Mismatch, ...]
    unverified: tuple[str, ...]


RECOUNTED = ("scripts", "chat_system", "chat_turns", "chat_tools")
"""Probes that tell another tokenizer or template apart in four calls, for a replica that serves meanwhile."""


async def check_counts(
    client: UpstreamClient,
    url: str,
    engine: Engine,
    counter: PromptCounter,
    timeout_seconds: float,
    probes: Collection[str] = PROBES,
) -> SelfCheck:
    """Count every probe, or those that are named, on both sides.

    Counting here runs in a thread. A probe that the engine refuses by an error of the request agrees with one that
    cannot be counted here: a model without a chat template refuses chats on both sides.

    Raises:
        KeyAskedError: the engine would refuse every request.
    """
    compared = 0
    mismatches = []
    unverified: dict[str, None] = {}
    for probe in probes:
        prompt = PROBES[probe]
        call = engine.read_call(*_wire_form(prompt))
        try:
            theirs = await count_by_engine(client, url, engine, call, timeout_seconds)
        except KeyAskedError:
            raise
        except EngineError as error:
            unverified[str(error)] = None
            continue
        ours = await asyncio.to_thread(_count, counter, call)
        compared += 1
        if ours != theirs:
            mismatches.append(Mismatch(probe, ours, theirs))
    return SelfCheck(compared, tuple(mismatches), tuple(unverified))


async def count_by_engine(
    client: UpstreamClient, url: str, engine: Engine, call: Call, timeout_seconds: float
) -> int | None:
    """Ask an engine for the input tokens of a call to one of its counting routes.

    Its answer, which may list a million tokens, is read in a thread. Returns None when the engine refuses the request
    as the client's own fault.

    Raises:
        EngineError: the route does not exist there, or the engine does not answer usefully.
    """
    status, body = await ask(client, url + call.route.value, engine.write_body(call, 0), timeout_seconds)
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise KeyAskedError(
            f"{call.route.value} answers {status}: the replica asks for a key, and the gateway has none to give;"
            " start the engine without --api-key, where only the gateway reaches it"
        )
    if status == 200:
        return await asyncio.to_thread(engine.read_token_count, call.route, body)
    failure = engine.read_failure(status, body)
    if failure.fault is UpstreamFault.CLIENT:
        return None
    raise EngineError(f"{call.route.value} answers {status}: {failure.message[:200]}")


def _wire_form(prompt: Prompt) -> tuple[Route, dict[str, Any]]:
    """Return the counting route and the body with which a probe is put to the engine."""
    match prompt:
        case TextPrompt(text):
            return Route.TOKENIZE, {"inputs": text}
        case ChatPrompt(messages, tools, tool_choice):
            wishes = {"tools": tools, "tool_choice": tool_choice}
            return Route.CHAT_TOKENIZE, {"messages": messages} | {k: v for k, v in wishes.items() if v is not None}
        case IdsPrompt():
            raise ValueError("token ids are their own count: no engine is asked for it")
        case _:
            assert_never(prompt)


def _count(counter: PromptCounter, call: Call) -> int | None:
    try:
        return sum(counter.count(prompt).tokens for prompt in call.prompts)
    except PromptError:
        return None


def _told(tokens: int | None) -> str:
    return "refused" if tokens is None else f"{tokens} tokens"
