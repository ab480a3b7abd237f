"""The pages on which a replica tells of itself."""

import asyncio
from collections.abc import Sequence

import aiohttp

from llmshed.errors import EngineError
from llmshed.loadtest.client import MOST_PAGE_BYTES, PAGE_SECONDS, open_session
from llmshed.loadtest.exchange import read_up_to


async def read_pages(url: str, paths: Sequence[str], key: str | None) -> dict[str, bytes]:
    """Return the pages that are answered with 200, by their path.

    Raises:
        EngineError: nobody answers there.
    """
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    found: dict[str, bytes] = {}
    async with open_session() as session:
        for path in paths:
            try:
                async with asyncio.timeout(PAGE_SECONDS), session.get(url + path, headers=headers) as page:
                    if page.status == 200:
                        found[path] = await read_up_to(page.content, MOST_PAGE_BYTES)
            except (aiohttp.ClientError, OSError, ValueError) as error:
                raise EngineError(f"nobody answers at {url}{path}: {str(error) or type(error).__name__}") from None
    return found
