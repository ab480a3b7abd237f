"""What stands at an address: a gateway or a replica, and the name of its model."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import orjson

from llmshed.errors import EngineError
from llmshed.loadtest.client import PAGE_SECONDS, open_session
from llmshed.loadtest.exchange import read_up_to

_LIMITS: Final = "/v1/llmshed/limits"
_LIMITS_SCHEMA: Final = "llmshed.limits/"
_MODELS: Final = "/v1/models"
_MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Target:
    """What an address tells of itself.

    Args:
        is_gateway: whether an llmshed gateway answers there.
        model: first model that it names; None where it names none.
    """

    is_gateway: bool
    model: str | None


async def look_at(url: str, key: str | None) -> Target:
    """Ask an address what it is.

    Raises:
        EngineError: nobody answers there.
    """
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    async with open_session() as session:
        limits = await _page(session, url + _LIMITS, headers)
        models = await _page(session, url + _MODELS, headers)
    schema = limits.get("schema") if isinstance(limits, dict) else None
    return Target(isinstance(schema, str) and schema.startswith(_LIMITS_SCHEMA), _first_model(models))


async def _page(session: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> Any:
    """Return a page's JSON; None where there is none."""
    try:
        async with asyncio.timeout(PAGE_SECONDS), session.get(url, headers=headers, allow_redirects=False) as page:
            body = await read_up_to(page.content, _MOST_BYTES)
            return orjson.loads(body) if page.status == 200 else None
    except orjson.JSONDecodeError:
        return None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise EngineError(f"nobody answers at {url}: {str(error) or type(error).__name__}") from None


def _first_model(models: Any) -> str | None:
    listed = models.get("data") if isinstance(models, dict) else None
    first = listed[0] if isinstance(listed, list) and listed else None
    name = first.get("id") if isinstance(first, dict) else None
    return name if isinstance(name, str) else None
