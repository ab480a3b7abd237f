"""The request id that a client sees: its own when it is harmless, else a fresh one. It is never a key in here."""

import re
import secrets
from collections.abc import Callable, Iterator, Mapping

_HARMLESS = re.compile(r"[A-Za-z0-9._~-]{1,128}")
_CLIENT_HEADERS = ("x-request-id", "x-amzn-trace-id")
"""huggingface_hub names each of its requests in the second."""


_ID_BYTES = 12
_IDS_AT_ONCE = 256


def _ids() -> Iterator[str]:
    """Yield ids, their random bits drawn for many at once: a call of the kernel for each is 2 % of a refusal."""
    while True:
        drawn = secrets.token_hex(_ID_BYTES * _IDS_AT_ONCE)
        for at in range(0, len(drawn), 2 * _ID_BYTES):
            yield "req_" + drawn[at : at + 2 * _ID_BYTES]


_FRESH = _ids()


def fresh_request_id() -> str:
    """Return a new id of 96 random bits, such as `req_0d9b31f0c35ba1e24c9f27a1`; for one thread alone."""
    return next(_FRESH)


def request_id_of(headers: Mapping[str, str], fresh: Callable[[], str] = fresh_request_id) -> str:
    """Return the client's `x-request-id` if it has 1 to 128 of `A-Z a-z 0-9 . _ ~ -` and nothing else, else `fresh()`.

    `headers` finds names in lower case, as aiohttp's mapping does in any case.
    """
    given = headers.get("x-request-id", "")
    return given if _HARMLESS.fullmatch(given) else fresh()


def client_request_id_of(headers: Mapping[str, str]) -> str | None:
    """Return the id that the client gave its request, for the decision log; None when it gave no harmless one."""
    for name in _CLIENT_HEADERS:
        given = headers.get(name, "")
        if _HARMLESS.fullmatch(given):
            return given
    return None
