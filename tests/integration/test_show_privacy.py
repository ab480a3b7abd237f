"""Canaries through a running daemon at log level debug: no prompt, no key, no answer is ever written down."""

import asyncio
import contextlib
import hashlib
import signal
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from fakes.engine import Conversation
from fakes.programs import Served, serve
from fakes.talking_tgi import TalkingTgi

MARK = "kanarek"
"""Part of every canary; no file, word or name of the package has it."""
KEY = f"sk-{MARK}-key-of-acme"
JSON = {"Content-Type": "application/json"}

Headers = dict[str, str]


class Canaries:
    """Texts that are told from any other, each used once."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self) -> str:
        return f"{MARK}-{next(self._numbers)}"


async def misbehave(conversation: Conversation) -> None:
    """Do what the prompt asks for; every engine's error repeats the prompt, as some do."""
    asked = conversation.asked
    text = asked.body.decode()
    event = orjson.dumps({"token": {"id": 1, "text": text, "logprob": 0.0, "special": False}, "generated_text": None})
    if "behave=crash" in text:
        conversation.reset()
    elif "behave=silence" in text:
        await conversation.peer_leaves()
    elif "behave=refusal" in text:
        body = orjson.dumps({"error": f"Input validation error: {text}", "error_type": "validation"})
        await conversation.whole(body, "422 Unprocessable Entity")
    elif "behave=failure" in text:
        body = orjson.dumps({"error": f"Request failed during generation: {text}", "error_type": "generation"})
        await conversation.whole(body, "424 Failed Dependency")
    elif "behave=nonsense" in text:
        await conversation.raw(b"HTTP/1.1 200 OK\r\nX-Prompt: " + asked.body[:50] + b"\r\nContent-Length: x\r\n\r\n")
        conversation.hang_up()
    elif asked.path == "/generate_stream" or '"stream":true' in text:
        await conversation.open_stream()
        await conversation.piece(b"data: " + event + b"\n\n")
        if "behave=late crash" in text:
            conversation.reset()
        elif "behave=late silence" in text:
            await conversation.peer_leaves()
        elif "behave=late error" in text:
            error = orjson.dumps({"error": text, "error_type": "generation"})
            await conversation.piece(b"data: " + error + b"\n\n")
            await conversation.end_stream()
        else:
            last = orjson.loads(event) | {"generated_text": text}
            await conversation.piece(b"data: " + orjson.dumps(last) + b"\n\n")
            await conversation.end_stream()
    else:
        await conversation.whole(orjson.dumps({"generated_text": text}))


BEHAVIOURS = (
    "well", "crash", "silence", "refusal", "failure", "nonsense", "late crash", "late error", "late silence",
)  # fmt: skip


def generating(canary: Canaries, behaviour: str) -> list[tuple[str, dict[str, Any]]]:
    """Return a request for each generating route with canaries wherever text may stand."""
    native = {
        "inputs": f"{canary()} behave={behaviour}",
        "parameters": {"max_new_tokens": 4, "stop": [canary()]},
    }
    tool = {"type": "function", "function": {"name": canary(), "description": canary(), "parameters": {canary(): {}}}}
    chat = {
        "model": "tgi",
        "messages": [
            {"role": "system", "content": canary()},
            {"role": "user", "content": [{"type": "text", "text": f"{canary()} behave={behaviour}"}]},
        ],
        "max_tokens": 4,
        "stop": [canary()],
        "tools": [tool],
        "tool_prompt": canary(),
        "user": canary(),
        "metadata": {canary(): canary()},
        "prompt_cache_key": canary(),
        "response_format": {"type": "json_object", "value": {canary(): canary()}},
    }
    plain = {"model": "tgi", "prompt": f"{canary()} behave={behaviour}", "max_tokens": 4, "stop": [canary()]}
    plain_chat = {name: chat[name] for name in ("model", "messages", "max_tokens", "stop")}
    return [
        ("/generate", native),
        ("/generate_stream", native),
        ("/", {**native, "stream": True}),
        ("/v1/chat/completions", chat),
        ("/v1/chat/completions", {**plain_chat, "stream": True}),
        ("/v1/completions", plain),
    ]


def mistaken(canary: Canaries) -> list[tuple[str, Any, Headers]]:
    """Return requests that are refused at every step of the door, raw bodies among them."""
    word = canary()
    image = {"type": "image_url", "image_url": {"url": f"data:{canary()}"}}
    said = {"role": "user", "content": canary(), "name": canary()}
    return [
        ("/generate", b'{"inputs": "' + word.encode(), {}),
        ("/generate", f'{{"{word}": 1, "{word}": 2}}'.encode(), {}),
        ("/generate", {"inputs": {"wrong": canary()}}, {}),
        ("/generate", {"inputs": canary(), "parameters": {canary(): canary()}}, {}),
        ("/generate", {"inputs": canary(), "parameters": {"max_new_tokens": canary()}}, {}),
        ("/v1/chat/completions", {"model": canary(), "messages": [{"role": "user", "content": canary()}]}, {}),
        ("/v1/chat/completions", {"messages": [{"role": canary(), "content": canary()}]}, {}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": canary()}], "chat_template": canary()}, {}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": canary()}]}]}, {}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": [image]}], "max_tokens": 4}, {}),
        ("/v1/chat/completions", {"messages": [said], "tool_choice": canary(), "max_tokens": 4}, {}),
        ("/v1/chat/completions", {"messages": [said], "api_base": f"http://{canary()}/", "max_tokens": 4}, {}),
        ("/v1/chat/completions", {"messages": [said], "metadata": {"llmshed_intent": canary()}, "max_tokens": 4}, {}),
        ("/v1/completions", {"prompt": [canary(), {"text": canary()}]}, {}),
        ("/v1/completions", {"prompt": f"{canary()} " * 50_000, "max_tokens": 4}, {}),
        ("/tokenize", {"inputs": canary()}, {}),
        ("/chat_tokenize", {"messages": [{"role": "user", "content": canary()}]}, {}),
        (f"/v1/{canary()}?key={canary()}", {"inputs": canary()}, {}),
        ("/generate", {"inputs": canary()}, {"Authorization": f"Bearer {canary()}"}),
        ("/generate", {"inputs": canary()}, {"X-API-Key": canary()}),
        ("/generate", {"inputs": canary()}, {"Authorization": f"Basic {canary()}"}),
        ("/generate", {"inputs": canary()}, {"Content-Encoding": canary()}),
        ("/generate", {"inputs": canary()}, {"x-llmshed-intent": canary()}),
        ("/generate", {"inputs": canary()}, {"x-llmshed-class": canary()}),
        ("/generate", {"inputs": canary()}, {"x-llmshed-deadline-ms": canary()}),
        ("/generate", {"inputs": f"{canary()} behave=silence"}, {"x-llmshed-deadline-ms": "100"}),
        ("/generate", {"inputs": canary()}, {f"x-{canary()}": "v" * 9000}),
    ]


def headers(canary: Canaries) -> Headers:
    """Return what any client may send beside its body; an id that is no id is told apart by its space."""
    return {
        "Authorization": f"Bearer {KEY}",
        "User-Agent": canary(),
        "Cookie": f"session={canary()}",
        "Referer": f"http://{canary()}/",
        "X-Forwarded-For": canary(),
        "x-request-id": f"{canary()} is no id",
        "x-llmshed-session": canary(),
        "x-stainless-retry-count": canary(),
        "traceparent": canary(),
        "tracestate": canary(),
        "baggage": f"user={canary()}",
        "x-amzn-trace-id": f"Root={canary()}",
        "idempotency-key": canary(),
        "grpc-timeout": canary(),
        "x-slo-ttft-ms": canary(),
        "x-stainless-read-timeout": canary(),
        "From": canary(),
        "Forwarded": f"for={canary()}",
        "Accept": f"application/{canary()}",
    }


@pytest.mark.slow
async def test_no_canary_is_written_down_whatever_becomes_of_its_request(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()}\n")
    keys.chmod(0o600)
    canary = Canaries()
    async with TalkingTgi(misbehave) as engine:
        toml = f"""
            log.level = "debug"
            lanes.interactive.first_byte_timeout_seconds = 0.5
            lanes.interactive.idle_timeout_seconds = 0.5
            tenants = [{{ name = "acme", keys_file = "{keys}" }}]
            [[pools]]
            tokenizer = "embedded"
            release_grace_seconds = 0.05
            gross_ceiling_tokens = 100_000
            replicas = [{{ name = "r1", url = "{engine.url}" }}]
        """
        async with serve(tmp_path, toml) as served, aiohttp.ClientSession() as session:
            reasons = {
                await answered(session, served, path, body, headers(canary))
                for behaviour in BEHAVIOURS
                for path, body in generating(canary, behaviour)
            }
            reasons |= {
                await answered(session, served, path, body, headers(canary) | more)
                for path, body, more in mistaken(canary)
            }
            await left(served, canary)
            reports = await everything_told(session, served)
            served.program.signal(signal.SIGUSR1)
            await served.program.until(lambda: served.program.logged("state"))
        written = {
            **reports,
            "log": served.program.stderr.decode(),
            "stdout": served.program.stdout.decode(),
            "decision log": served.decisions_file.read_text(),
        }
    # The canaries went through every kind of ending; otherwise their absence would say little.
    assert {"200", "upstream_error", "upstream_timeout", "malformed", "duplicate_key", "unsupported_field"} <= reasons
    assert {"not_found", "unauthenticated", "context_limit", "content_encoding", "headers_too_large"} <= reasons
    for name in ("log", "decision log", "/metrics", "/admin/decisions?n=1000"):
        assert len(written[name]) > 1000
    told = {name: line for name, text in written.items() for line in text.splitlines() if MARK in line.lower()}
    assert told == {}


async def answered(session: aiohttp.ClientSession, served: Served, path: str, body: Any, sent: Headers) -> str:
    """Send a request, read its answer to the end however that comes, and return its reason, or its status."""
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    async with session.post(served.data + path, data=content, headers=JSON | sent) as answer:
        with contextlib.suppress(aiohttp.ClientError):
            await answer.read()
        return answer.headers.get("x-llmshed-reason") or str(answer.status)


async def left(served: Served, canary: Canaries) -> None:
    """Send a prompt that waits for ever, and leave."""
    body = orjson.dumps({"inputs": f"{canary()} behave=silence", "parameters": {"max_new_tokens": 4}})
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    head = f"POST /generate HTTP/1.1\r\nHost: {canary()}\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {len(body)}"
    writer.write(f"{head}\r\nContent-Type: application/json\r\n\r\n".encode() + body)
    await writer.drain()
    await asyncio.sleep(0.1)
    writer.transport.abort()


async def everything_told(session: aiohttp.ClientSession, served: Served) -> dict[str, str]:
    """Return what an operator reads, by path."""
    told = {}
    for path in ("/metrics", "/admin/decisions?n=1000", "/admin/state", "/readyz?verbose", "/admin/openapi.json"):
        async with session.get(served.admin + path) as answer:
            told[path] = await answer.text()
    return told
