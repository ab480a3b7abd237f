"""What atheris runs: `python fuzz_targets.py TARGET CORPUS [libFuzzer options]`, where atheris is installed.

A target raises for whatever may never happen. It holds the readers to oracles of their own, since a reader that is
wrong without raising is the worse one.
"""

import json
import re
import sys
from collections.abc import Callable
from typing import Any

import atheris  # type: ignore[import-untyped]  # only where it is installed, for itself

with atheris.instrument_imports(include=["llmshed"]):
    from llmshed.admission.reasons import Reason
    from llmshed.config.loading import load_config
    from llmshed.engines.base import BodyError, Route
    from llmshed.engines.sse import EventScanner
    from llmshed.engines.tgi.engine import TgiEngine
    from llmshed.engines.tgi.fields import MESSAGE_FIELDS, PARAMETER_FIELDS, ROUTE_FIELDS
    from llmshed.errors import ConfigError, PromptError
    from llmshed.gateway.counting.prompt_bytes import prompt_bytes
    from llmshed.gateway.door.body import parse_body
    from llmshed.tokenizing.prompts import ChatPrompt
    from llmshed.tokenizing.tgi_messages import flatten, tools_in_use

ENGINES = (TgiEngine("3.3.5"), TgiEngine("1.4.5", allow_truncate=True))
ROUTES = tuple(Route)
REASONS = {Reason.MALFORMED, Reason.DUPLICATE_KEY, Reason.UNSUPPORTED_FIELD}
NAMES = sorted({name for table in (*ROUTE_FIELDS.values(), PARAMETER_FIELDS, MESSAGE_FIELDS) for name in table})
NAMES += ["type", "text", "image_url", "url", "function", "arguments", "include_usage", "llmshed_intent", "x"]
NAMES += ["messages", "role", "content", "inputs", "parameters", "prompt"] * 10
VALUES = [
    "user",
    "assistant",
    "text",
    "image_url",
    "function",
    "auto",
    "none",
    "flex",
    "bulk",
    "data:,",
    "![](http://a)",
]
MOST_EVENT_BYTES = 300


def body(data: bytes) -> None:
    """A body is refused with a reason, or is one value, one call and the same call again when it is read back.

    Bytes that begin with a null are no body: one is built by them, which gets further than most that are JSON at all.
    """
    if data.startswith(b"\x00"):
        data = json.dumps(_built(atheris.FuzzedDataProvider(data[1:]), depth=4)).encode()
    try:
        value = parse_body(data)
    except BodyError as error:
        _hold(error)
        return
    assert json.loads(data, object_pairs_hook=_distinct, parse_int=_number) == value
    for engine in ENGINES:
        for route in ROUTES:
            _read(engine, route, value)


def _built(choices: Any, depth: int) -> Any:
    """Build a value of words that bodies hold, as the bytes choose."""
    match choices.ConsumeIntInRange(0 if depth < 4 else 6, 7 if depth else 4):
        case 0:
            return choices.PickValueInList([None, True, False])
        case 1:
            return choices.PickValueInList([0, 1, -1, 2, 128, 129, 2**31 - 1, 2**31, 2**63, 2**64, 0.5, 1e300])
        case 2 | 3:
            return choices.PickValueInList(VALUES)
        case 4:
            return choices.ConsumeUnicodeNoSurrogates(8)
        case 5:
            return [_built(choices, depth - 1) for _ in range(choices.ConsumeIntInRange(0, 4))]
        case _:
            names = [choices.PickValueInList(NAMES) for _ in range(choices.ConsumeIntInRange(1, 6))]
            return {name: _built(choices, depth - 1) for name in names}


def _hold(error: BodyError) -> None:
    assert error.reason in REASONS
    assert str(error).isprintable()


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def _number(digits: str) -> int | float:
    """Read a whole number beyond 64 bits as a double, as the gateway does and tells the engine."""
    return int(digits) if len(digits) <= 20 and -(2**63) <= int(digits) < 2**64 else float(digits)


def _read(engine: TgiEngine, route: Route, value: dict[str, Any]) -> None:
    try:
        call = engine.read_call(route, value)
    except BodyError as error:
        _hold(error)
        return
    for prompt in call.prompts:
        prompt_bytes(prompt)
        if isinstance(prompt, ChatPrompt):
            _flatten(prompt)
    again = engine.read_call(route, parse_body(engine.write_body(call, 7)))
    assert (again.prompts, again.copies, again.streamed) == (call.prompts, call.copies, call.streamed)


def _flatten(prompt: ChatPrompt) -> None:
    try:
        tools_in_use(prompt)
        flatten(prompt.messages)
    except PromptError:
        return


def stream(data: bytes) -> None:
    """However a stream is cut, its events are those that the standard finds, and readers take any of them."""
    size, data = (data[0] if data else 1) or 1, data[1:]
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    found = _events(pieces)
    assert found == _events([data])
    if None not in found:
        assert found == _by_the_standard(data)
    for engine in ENGINES:
        for call in CALLS:
            reader = engine.stream_reader(call)
            for piece in pieces:
                reader.feed(piece)
            reader.end()
            assert reader.facts.output_tokens >= 0
        engine.find_failure(data)


def _events(pieces: list[bytes]) -> list[bytes | None]:
    scanner = EventScanner(MOST_EVENT_BYTES)
    return [event for piece in pieces for event in scanner.feed(piece)] + scanner.end()


def _by_the_standard(whole: bytes) -> list[bytes]:
    found: list[bytes] = []
    held: list[bytes] = []
    for line in [*re.split(rb"\r\n|\n|\r", whole), b""]:
        if not line and held:
            found.append(b"\n".join(held))
            held = []
        elif line.startswith(b"data:"):
            held.append(line[5:].removeprefix(b" "))
    return found


CALLS = tuple(
    ENGINES[0].read_call(route, value)
    for route, value in (
        (Route.GENERATE_STREAM, {"inputs": "a"}),
        (Route.CHAT, {"messages": [{"role": "user", "content": "a"}], "stream": True, "n": 2}),
        (Route.COMPLETIONS, {"prompt": ["a", "b"], "stream": True}),
    )
)


def toml(data: bytes) -> None:
    """A configuration is loaded, or refused with the place of every mistake."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    try:
        load_config(text, "f.toml", {}, {})
    except ConfigError as error:
        placed = [problem.startswith("f.toml:") for problem in error.problems]
    else:
        return
    assert placed
    assert all(placed)


TARGETS: dict[str, Callable[[bytes], None]] = {"body": body, "stream": stream, "toml": toml}

if __name__ == "__main__":
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()
