"""The requests that clients send: whole HTTP messages, the same to every proxy."""

import json
from dataclasses import dataclass, replace

from dataplane.building import HERE

ROOT = HERE.parents[1]
MODEL = "m"
KEY = "sk-bench"
NUMBER = "########"
"""Becomes a number in each request that is sent, so that no text comes twice."""

_CHAT_BYTES = 2100
_LONG_BYTES = 62_000
_HEAD = (
    "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\nAuthorization: Bearer {key}\r\n"
    "Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
)


@dataclass(frozen=True, slots=True)
class Chat:
    """A request of the bench.

    Args:
        text: the only message.
        tokens: output ceiling, which is also the length of a streamed answer.
        streamed: whether the answer is a stream.
        pace_ms: time between two of its events.
        key: who asks.
    """

    text: str
    tokens: int = 256
    streamed: bool = False
    pace_ms: int = 40
    key: str = KEY

    @property
    def message(self) -> bytes:
        """Return the request as it is sent."""
        # The order and the separators are what the replica looks for.
        body = json.dumps(
            {
                "model": MODEL,
                "messages": [{"role": "user", "content": self.text}],
                "stream": self.streamed,
                "max_tokens": self.tokens,
                "seed": self.pace_ms,
            },
            separators=(",", ":"),
        )
        return (_HEAD.format(path="/v1/chat/completions", key=self.key, size=len(body)) + body).encode()


def short_text() -> str:
    """Return about 400 tokens of English."""
    return _english()[:_CHAT_BYTES]


def long_text() -> str:
    """Return about 14,000 tokens of English and Python, no two copies of which are alike."""
    parts = [_english(), *(path.read_text("utf-8") for path in sorted((ROOT / "src").rglob("*.py")))]
    text = "\n".join(parts)[:_LONG_BYTES]
    return f"{NUMBER} {text.encode('ascii', 'replace').decode()}"


def stream(tokens: int, pace_ms: int = 40) -> Chat:
    """Return the chat that most rounds stream."""
    return Chat(short_text(), tokens, streamed=True, pace_ms=pace_ms)


def unlike(chat: Chat) -> Chat:
    """Return a chat whose text is another in each request."""
    return replace(chat, text=f"{NUMBER} {chat.text}")


def _english() -> str:
    return " ".join((ROOT / "LICENSE").read_text("ascii").split())
