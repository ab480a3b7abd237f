"""Every route of the admin listener in one table."""

import functools
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from llmshed.gateway.admin import drills, handlers, ladders
from llmshed.gateway.door.answers import written_answer
from llmshed.gateway.openapi.document import admin_document, written

AdminHandler = Callable[[handlers.Administration, web.BaseRequest], Awaitable[web.StreamResponse]]

DECISION_PATH = "/admin/decisions/ID"
"""Stands in the table for the path of every request id."""

OPEN_PATHS = frozenset({"/livez", "/readyz"})
"""Paths that need no token: an orchestrator's probes hold none, and learn no more than alive and ready."""


async def _openapi(house: handlers.Administration, request: web.BaseRequest) -> web.Response:
    """Tell of all routes, in OpenAPI."""
    del house, request
    return written_answer(openapi())


@functools.cache
def openapi() -> bytes:
    """Return the document of this table, which is written once."""
    routes = ((method, path.replace(DECISION_PATH, "/admin/decisions/{request_id}")) for method, path in ADMIN_ROUTES)
    return written(admin_document(routes, OPEN_PATHS))


ADMIN_ROUTES: Mapping[tuple[str, str], AdminHandler] = {
    ("GET", "/metrics"): handlers.metrics,
    ("GET", "/livez"): handlers.livez,
    ("GET", "/readyz"): handlers.readyz,
    ("GET", "/admin/openapi.json"): _openapi,
    ("GET", "/admin/state"): handlers.state,
    ("GET", "/admin/decisions"): handlers.decisions,
    ("GET", DECISION_PATH): handlers.decision,
    ("POST", "/admin/reload"): handlers.reload,
    ("POST", "/admin/classify"): handlers.classify,
    ("GET", "/admin/ladder"): ladders.status,
    ("GET", "/admin/ladder/history"): ladders.history,
    ("POST", "/admin/ladder/trigger"): ladders.trigger,
    ("POST", "/admin/ladder/release"): ladders.release,
    ("POST", "/admin/ladder/drill"): drills.drill,
}


def table_path(path: str) -> str:
    """Return the path by which the table knows a request's."""
    return DECISION_PATH if path.startswith(handlers.DECISION_PREFIX) else path
