"""One case on one path: the request, its answer as it comes, and what is told beside it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import orjson

PATH: Final = "/v1/chat/completions"
MOST_ANSWER_BYTES: Final = 16 << 20
MOST_ERROR_BYTES: Final = 65_536


@dataclass(slots=True)
class Answer:
    """What came of one request.

    Args:
        status: HTTP status; 0 where nobody answered.
        reason: the gateway's reason, else the error in words; None for an answer.
        retry_after_seconds: how long to wait before another try; None where that was not told.
        degraded: what the gateway says it did to the request.
        model: the model that answered, by the gateway's word.
        text: what was answered; the calls of tools as JSON where nothing else was.
        finish_reason: why it ended.
        ttft_seconds: time from sending to the first part of it.
        latency_seconds: time from sending to its end.
        input_tokens: tokens of the prompt, as the engine counted them.
        output_tokens: tokens of the answer, likewise.
        timed_out: whether it took longer than was permitted.
    """

    status: int = 0
    reason: str | None = None
    retry_after_seconds: float | None = None
    degraded: tuple[str, ...] = ()
    model: str | None = None
    text: str = ""
    finish_reason: str | None = None
    ttft_seconds: float | None = None
    latency_seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    timed_out: bool = False

    @property
    def is_lost(self) -> bool:
        """Say whether no answer began, and not for want of time."""
        return self.status == 0 and not self.timed_out

    @property
    def was_not_tried(self) -> bool:
        """Say whether the gateway was busy, gone or silent, which says nothing of an answer."""
        return self.timed_out or self.status in {0, 408, 429, 502, 503, 504}


async def asked(
    session: aiohttp.ClientSession, url: str, body: object, headers: Mapping[str, str], now: Callable[[], float]
) -> Answer:
    """Send a request and follow its answer to the end; whatever goes wrong is told in it."""
    answer, sent_at = Answer(), now()
    try:
        async with session.post(
            url + PATH,
            data=orjson.dumps(body),
            headers={"content-type": "application/json", **headers},
            allow_redirects=False,
        ) as response:
            answer.status = response.status
            _read_head(answer, response.headers)
            if response.status == 200:
                await _read_stream(answer, response.content, lambda: now() - sent_at)
            else:
                answer.reason = answer.reason or _message(await response.content.read(MOST_ERROR_BYTES))
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        answer.reason = f"{type(error).__name__}: {error}".rstrip(": ")
        answer.timed_out = isinstance(error, TimeoutError)
        if answer.status == 200 and not answer.timed_out:
            answer.status = 500  # it broke on the way, as it would for any client
    except (ValueError, TypeError, AttributeError):  # of orjson, and of values that are no objects
        answer.status, answer.reason = 500, "the stream is not that of a chat"
    answer.latency_seconds = now() - sent_at
    return answer


def _read_head(answer: Answer, headers: Mapping[str, str]) -> None:
    answer.reason = headers.get("x-llmshed-reason")
    answer.model = headers.get("x-llmshed-model")
    answer.degraded = tuple(word.strip() for word in headers.get("x-llmshed-degraded", "").split(",") if word.strip())
    told = headers.get("retry-after", "")
    answer.retry_after_seconds = float(told) if told.isascii() and told.isdigit() else None


@dataclass(slots=True)
class _Parts:
    """What the events of a stream hold so far."""

    text: list[str] = field(default_factory=list)
    calls: dict[int, dict[str, str]] = field(default_factory=dict)


async def _read_stream(answer: Answer, content: aiohttp.StreamReader, since_sent: Callable[[], float]) -> None:
    parts, rest, taken = _Parts(), b"", 0
    ended = False
    async for piece in content.iter_any():
        taken += len(piece)
        if taken > MOST_ANSWER_BYTES:
            raise aiohttp.ClientPayloadError(f"the answer is longer than {MOST_ANSWER_BYTES >> 20} MiB")
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            said = line.strip()
            if said == b"data: [DONE]":
                ended = True
            elif said.startswith(b"data:"):
                _take(answer, parts, orjson.loads(said[5:]), since_sent)
    if answer.reason is None and not (ended or answer.finish_reason):
        answer.status, answer.reason = 500, "the stream ended before its end was told"
    answer.text = "".join(parts.text)
    if not answer.text and parts.calls:
        answer.text = orjson.dumps([parts.calls[place] for place in sorted(parts.calls)]).decode()


def _take(answer: Answer, parts: _Parts, event: Any, since_sent: Callable[[], float]) -> None:
    """Take up one event, which is an engine's: any shape is possible."""
    if not isinstance(event, dict):
        return
    if "error" in event:
        answer.status, answer.reason = 500, _message(orjson.dumps(event))
        return
    usage = event.get("usage")
    if isinstance(usage, dict):
        answer.input_tokens = _count(usage.get("prompt_tokens"))
        answer.output_tokens = _count(usage.get("completion_tokens"))
    for choice in event.get("choices") or ():
        delta = choice.get("delta") or {}
        content, calls = delta.get("content"), delta.get("tool_calls")
        if (content or calls) and answer.ttft_seconds is None:
            answer.ttft_seconds = since_sent()
        if isinstance(content, str):
            parts.text.append(content)
        for call in calls if isinstance(calls, list) else [calls] if isinstance(calls, dict) else ():
            _take_call(parts, call)
        answer.finish_reason = choice.get("finish_reason") or answer.finish_reason


def _take_call(parts: _Parts, call: dict[str, Any]) -> None:
    known = parts.calls.setdefault(int(call.get("index") or 0), {"name": "", "arguments": ""})
    function = call.get("function") or {}
    for name in known:
        value = function.get(name)
        known[name] += value if isinstance(value, str) else "" if value is None else orjson.dumps(value).decode()


def _count(told: Any) -> int | None:
    return told if type(told) is int and told >= 0 else None


def _message(body: bytes) -> str:
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        return "an error without words"
    error = told.get("error") if isinstance(told, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return " ".join(str(message or told).split())[:300]
