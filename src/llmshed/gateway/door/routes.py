"""Every route of the data listener in one table, and who may use it.

What is not open by name needs a key once keys exist: a route that somebody adds and forgets is closed, and so is every
path that no table knows.
"""

import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web

from llmshed.engines.base import Route
from llmshed.gateway.contract.answer_headers import common_headers
from llmshed.gateway.door import describe, generate, tokenize
from llmshed.gateway.door.answers import written_answer
from llmshed.gateway.door.visit import Visit
from llmshed.gateway.openapi.document import data_document, written

if TYPE_CHECKING:
    from llmshed.gateway.daemon.app import Gateway

DataHandler = Callable[["Gateway", Visit], Awaitable[web.StreamResponse]]

OPEN_PATHS = frozenset({"/health"})
"""Paths of the data listener that need no key: probes hold none."""


@dataclass(frozen=True, slots=True)
class DataRoute:
    """What a path of the data listener does for GET and for POST; None where it does not take the method."""

    get: DataHandler | None = None
    post: DataHandler | None = None

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods told in Allow; HEAD goes wherever GET does."""
        get = ("GET", "HEAD") if self.get is not None else ()
        post = ("POST",) if self.post is not None else ()
        return (*get, *post, "OPTIONS")


async def _openapi(gateway: "Gateway", visit: Visit) -> web.Response:
    """Tell of all routes, in OpenAPI."""
    del gateway
    return written_answer(openapi(), common_headers(visit.request_id))


@functools.cache
def openapi() -> bytes:
    """Return the document of this table, which is written once."""
    return written(data_document({path: route.methods for path, route in DATA_ROUTES.items()}, OPEN_PATHS))


DATA_ROUTES: Mapping[str, DataRoute] = {
    Route.ROOT.value: DataRoute(get=describe.health, post=generate.serve),
    Route.GENERATE.value: DataRoute(post=generate.serve),
    Route.GENERATE_STREAM.value: DataRoute(post=generate.serve),
    Route.CHAT.value: DataRoute(post=generate.serve),
    Route.COMPLETIONS.value: DataRoute(post=generate.serve),
    Route.TOKENIZE.value: DataRoute(post=tokenize.serve),
    Route.CHAT_TOKENIZE.value: DataRoute(post=tokenize.serve),
    "/info": DataRoute(get=describe.info),
    "/health": DataRoute(get=describe.health),
    "/v1/models": DataRoute(get=describe.models),
    "/v1/llmshed/limits": DataRoute(get=describe.limits),
    "/openapi.json": DataRoute(get=_openapi),
}
