"""Whole answers that the gateway writes itself, other than refusals."""

from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web


def json_answer(value: Any, headers: Mapping[str, str] | None = None, status: int = 200) -> web.Response:
    """Return a JSON answer that no cache keeps."""
    body = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)  # keys may be words of an enumeration
    return written_answer(body, headers, status)


def written_answer(body: bytes, headers: Mapping[str, str] | None = None, status: int = 200) -> web.Response:
    """Return an answer of JSON that is written already, likewise."""
    own = {"content-type": "application/json", "cache-control": "no-store"}
    return web.Response(status=status, body=body, headers={**own, **(headers or {})})
