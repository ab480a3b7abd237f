"""Every route of the admin listener in one table."""

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from llmshed.gateway.admin import handlers

AdminHandler = Callable[[handlers.Administration, web.BaseRequest], Awaitable[web.StreamResponse]]

OPEN_PATHS = frozenset({"/livez", "/readyz"})
"""Paths that need no token: an orchestrator's probes hold none, and learn no more than alive and ready."""

ADMIN_ROUTES: Mapping[tuple[str, str], AdminHandler] = {
    ("GET", "/metrics"): handlers.metrics,
    ("GET", "/livez"): handlers.livez,
    ("GET", "/readyz"): handlers.readyz,
    ("GET", "/admin/state"): handlers.state,
    ("GET", "/admin/decisions"): handlers.decisions,
    ("POST", "/admin/reload"): handlers.reload,
    ("POST", "/admin/classify"): handlers.classify,
}
