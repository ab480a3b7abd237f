"""Requests of doubtful framing, each with the one reading that it may have; the oracle is RFC 9112, read by hand.

The first table reads the reference payloads by name. Where the standard leaves a choice, the strict one is taken, with
the reason beside it.
"""

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from fakes.framing_ideas import CASES

PATHS = ("/body", "/echo", "/hdr", "/st", "/after")
"""The paths that the payloads ask for, and that of the request sent behind each."""

BEHIND = b"GET /after HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
"""Sent behind each payload on the same connection: it is read as it stands, or never."""

Read = tuple[str, str, bytes]
"""Method, path and body of one request as a handler sees them."""


@dataclass(frozen=True, slots=True)
class Case:
    """One payload: its bytes, what a handler may read in it, and whether the connection ends with it."""

    name: str
    payload: bytes
    reading: tuple[Read, ...]
    ends: bool

    @property
    def seen(self) -> tuple[Read, ...]:
        """Return everything that handlers see when `BEHIND` follows."""
        return self.reading if self.ends else (*self.reading, ("GET", "/after", b""))

    @property
    def answers(self) -> tuple[str, ...]:
        """Return what the answers to it tell then."""
        return ("refused",) if self.refused else ("read",) * len(self.seen)

    @property
    def refused(self) -> bool:
        return not self.reading

    def pieces(self, size: int) -> list[bytes]:
        """Return the payload in pieces of at most `size` bytes."""
        return [self.payload[start : start + size] for start in range(0, len(self.payload), size)]


REFUSED: tuple[Read, ...] = ()
HELLO: tuple[Read, ...] = (("POST", "/body", b"hello"),)
EMPTY: tuple[Read, ...] = (("POST", "/body", b""),)


def _get(path: str) -> tuple[Read, ...]:
    return (("GET", path, b""),)


# What is not named here is refused and ends its connection.
_READ: dict[str, tuple[Read, ...]] = {
    "TE name underscore": EMPTY,  # a header that nobody knows
    "latin1 in value": _get("/echo"),  # obs-text: opaque bytes
    "dup X-Request-Id": _get("/hdr"),
    "no Host 1.0": _get("/st"),
    "Host with slash": _get("/st"),  # no host is served under a name here
    "abs-form other host": _get("/st"),  # must be taken, and wins over Host (section 3.2.2)
    "leading CRLF": _get("/st"),  # should be skipped (section 2.2)
    "chunk ext": HELLO,  # must be ignored (section 7.1.1)
    "chunk ext 60KB": HELLO,
    "trailer header": HELLO,  # may be dropped (section 7.1.2)
    "GET with body": (("GET", "/st", b"hello"),),
    "pipeline 3": _get("/st") * 3,
    "tab before value ok": _get("/hdr"),
    "Content-Encoding: br bad": HELLO,  # the framing is plain; what the coding means is the route's affair
    "Content-Encoding: gzip bad": HELLO,
    "Upgrade h2c": _get("/st"),  # may be ignored (RFC 9110, 7.8)
}
_ENDS = {"no Host 1.0"}
"""What is read and ends its connection: HTTP/1.0 keeps none unless it is asked to."""


def reference_cases(data_dir: Path) -> Iterator[Case]:
    """Yield the cases of the reference payloads."""
    file = data_dir / "corpora" / "http-framing" / "payloads.json"
    for row in orjson.loads(file.read_bytes()):
        name = row["name"]
        reading = _READ.get(name, REFUSED)
        payload = b64decode(row["payload_base64"])
        yield Case(name, payload, reading, ends=name in _ENDS or reading == REFUSED or _ends_by_itself(payload))


def own_cases() -> Iterator[Case]:
    """Yield the cases that stand beside them."""
    for name, (payload, reading, ends) in CASES.items():
        yield Case(name, payload, reading, ends or _ends_by_itself(payload))


def _ends_by_itself(payload: bytes) -> bool:
    """Say whether nothing may be read behind a payload: behind chunks and offers of another protocol nothing is."""
    head = payload.partition(b"\r\n\r\n")[0].lower()
    return b"\r\ntransfer-encoding:" in head or b"\r\nupgrade:" in head
