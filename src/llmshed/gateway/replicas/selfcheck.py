"""Whether the gateway counts as the engine does: probe prompts, counted here and by the engine's own routes."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from llmshed.engines.base import Call, Engine, Route, UpstreamFault
from llmshed.errors import EngineError, PromptError
from llmshed.gateway.relay.upstream import UpstreamClient, ask
from llmshed.tokenizing.base import PromptCounter

_TEXTS = (
    "The quick brown fox jumps over the lazy dog.",
    "  two spaces, a tab\t, and\n\n\nthree line feeds  ",
    "naïve café, Größe, Ωμέγα, Ελλάδα",
    "日本語のテキストと、한국어 텍스트, 中文文本。",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 \u00a0 \u2028 \ufeff",
    "1234567890 3.14159 0x7fff_ffff 1e-9",
    "def f(x):\n    return {'a': [x, None], \"b\": f'{x!r}'}\n",
    "<s></s><|im_start|>user<|im_end|><|endoftext|>[INST] <bos>",
    "<|im_start|> <unk> <pad>  <mask>",
)
_USER = {"role": "user", "content": "What is the capital of France?"}
_CHATS: tuple[list[Mapping[str, Any]], ...] = (
    [_USER],
    [{"role": "system", "content": " Be brief.\n"}, _USER],
    [_USER, {"role": "assistant", "content": "Paris."}, {"role": "user", "content": "And <|im_end|> of Italy?\n"}],
    [{"role": "user", "content": [{"type": "text", "text": "One "}, {"type": "text", "text": "two"}]}],
    [_USER, {"role": "assistant", "content": "The capital is "}],
)
_TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One probe that the engine counts otherwise; None where that side cannot count it at all."""

    probe: str
    counted_tokens: int | None
    engine_tokens: int | None

    def __str__(self) -> str:
        return f"{self.probe}: {_told(self.counted_tokens)} here, {_told(self.engine_tokens)} by the engine"


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


async def check_counts(
    client: UpstreamClient, url: str, engine: Engine, counter: PromptCounter, timeout_seconds: float
) -> SelfCheck:
    """Count every probe on both sides.

    Counting here runs in a thread. A probe that the engine refuses by an error of the request agrees with one that
    cannot be counted here: a model without a chat template refuses chats on both sides.
    """
    compared = 0
    mismatches = []
    unverified: dict[str, None] = {}
    for probe, route, body in _probes():
        call = engine.read_call(route, body)
        try:
            theirs = await count_by_engine(client, url, engine, call, timeout_seconds)
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

    Returns None when the engine refuses the request as the client's own fault.

    Raises:
        EngineError: the route does not exist there, or the engine does not answer usefully.
    """
    status, body = await ask(client, url + call.route.value, engine.write_body(call, 0), timeout_seconds)
    if status == 200:
        return engine.read_token_count(call.route, body)
    failure = engine.read_failure(status, body)
    if failure.fault is UpstreamFault.CLIENT:
        return None
    raise EngineError(f"{call.route.value} answers {status}: {failure.message[:200]}")


def _probes() -> Iterator[tuple[str, Route, dict[str, Any]]]:
    for number, text in enumerate(_TEXTS, 1):
        yield f"text {number}", Route.TOKENIZE, {"inputs": text}
    for number, messages in enumerate(_CHATS, 1):
        yield f"chat {number}", Route.CHAT_TOKENIZE, {"messages": messages}
    yield "chat with a tool", Route.CHAT_TOKENIZE, {"messages": [_USER], "tools": [_TOOL]}


def _count(counter: PromptCounter, call: Call) -> int | None:
    try:
        return sum(counter.count(prompt).tokens for prompt in call.prompts)
    except PromptError:
        return None


def _told(tokens: int | None) -> str:
    return "refused" if tokens is None else f"{tokens} tokens"
