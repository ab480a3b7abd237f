"""Every upstream client, for tests that hold for each of them."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from fakes.loops import AsyncTest, on_both_loops
from llmshed.config.server import UpstreamSettings
from llmshed.gateway.relay.aiohttp_upstream import AiohttpUpstream
from llmshed.gateway.relay.plain_upstream import PlainUpstream

Client = type[AiohttpUpstream] | type[PlainUpstream]


def with_upstream(test: AsyncTest) -> Callable[..., None]:
    """Give a test an open client of either kind, on both loops."""

    @functools.wraps(test)
    async def opened(*, client: Client, **named: Any) -> None:
        async with client(UpstreamSettings(connect_timeout_seconds=30)) as upstream:
            await test(upstream=upstream, **named)

    asked = inspect.signature(test).parameters.values()
    others = [parameter for parameter in asked if parameter.name != "upstream"]
    chosen = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY)
    opened.__signature__ = inspect.Signature([*others, chosen])  # type: ignore[attr-defined]  # pytest reads it
    both = [AiohttpUpstream, PlainUpstream]
    parametrized: Callable[..., None] = pytest.mark.parametrize("client", both, ids=["aiohttp", "plain"])(
        on_both_loops(opened)
    )
    return parametrized
