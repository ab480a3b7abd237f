"""The route label: a path of the fixed set, or `other`, so that no client can add a series or write a path down."""

from llmshed.engines.base import Route

OTHER_ROUTE = "other"

KNOWN_ROUTES = (
    *(route.value for route in Route),
    "/info",
    "/health",
    "/v1/models",
    "/v1/llmshed/limits",
    "/openapi.json",
)
"""Every path of the data listener."""

_KNOWN = frozenset(KNOWN_ROUTES)


def route_label(path: str) -> str:
    """Return `path` if it is a route of the data listener, else `other`."""
    return path if path in _KNOWN else OTHER_ROUTE
