"""Whole answers that the gateway writes itself, other than refusals."""

from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web


def json_answer(value: Any, headers: Mapping[str, str] | None = None, status: int = 200) -> web.Response:
    """Return a JSON answer that no cache keeps."""
    own = {"content-type": "application/json", "cache-control": "no-store"}
    return web.Response(status=status, body=orjson.dumps(value), headers={**own, **(headers or {})})
