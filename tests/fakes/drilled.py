"""A gateway as a drill sees it, in threads: its admin route, and chats whose answers a test chooses."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORD = "a-pass"
TERMS: dict[str, Any] = {
    "schema": "llmshed.ladder_drill/1", "pass": WORD, "valid_seconds": 86400.0, "pool": "main", "ladder": "small@1",
    "in_force": [], "evaluations": None,
    "pools": {"main": {"model": "m", "facts": {"model_id": "m"}}, "small": {"model": "s", "facts": {"model_id": "s"}}},
    "rungs": [
        {"name": "short", "terms": ["cap_output 4"], "actions": ["cap_output"], "pool": "main",
         "largest_quality_gap": 0.1},
        {"name": "smaller", "terms": ["cap_output 4", "smaller_model small"],
         "actions": ["cap_output", "smaller_model"], "pool": "small", "largest_quality_gap": 0.5},
    ],
}  # fmt: skip


@dataclass(slots=True)
class Said:
    """What a path answers to a case: a text as a stream, events as they are, or a status with headers."""

    text: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    events: tuple[bytes, ...] = ()


@dataclass(slots=True)
class Sent:
    """One chat that came."""

    rung: str
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def question(self) -> str:
        content: str = self.body["messages"][-1]["content"]
        return content


@dataclass(slots=True)
class DrilledGateway:
    """What it tells, answers and heard."""

    url: str
    says: Callable[[Sent], Said]
    terms: dict[str, Any] = field(default_factory=lambda: dict(TERMS))
    sent: list[Sent] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def drilled_gateway(says: Callable[[Sent], Said]) -> Iterator[DrilledGateway]:
    """Serve on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Say nothing."""

        def do_GET(self) -> None:
            self._answer(404, b"{}", {})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path == "/admin/ladder/drill":
                gateway.asked.append({**body, "authorization": self.headers.get("authorization")})
                self._answer(200, json.dumps({**gateway.terms, "data": gateway.url}).encode(), {})
                return
            sent = Sent(self.headers["x-llmshed-drill-rung"], body, {n.lower(): v for n, v in self.headers.items()})
            gateway.sent.append(sent)
            said = gateway.says(sent)
            self._answer(said.status, stream(said) if said.status == 200 else b"{}", said.headers)

        def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    gateway = DrilledGateway(f"http://127.0.0.1:{server.server_address[1]}", says)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield gateway
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def stream(said: Said) -> bytes:
    """Return an answer as the events of a chat, a word each."""
    if said.events:
        return b"".join(b"data: " + event + b"\n\n" for event in said.events)
    words = said.text.split(" ")
    events: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": (" " if number else "") + word}}]}
        for number, word in enumerate(words)
    ]
    if not said.cut:
        usage = {"prompt_tokens": 10, "completion_tokens": len(words)}
        events += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage}]
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    return body if said.cut else body + b"data: [DONE]\n\n"
