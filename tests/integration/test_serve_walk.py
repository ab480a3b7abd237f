"""A walk over both route tables in every spelling: what is not open by name needs a key, and no spelling is a route."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from fakes.house import House, house
from fakes.tenants import digest_file, tenant
from fakes.wire import answers, talk
from llmshed.gateway.admin.routes import ADMIN_ROUTES
from llmshed.gateway.door.routes import DATA_ROUTES

METHODS = (
    "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "LINK", "PURGE", "M-SEARCH",
    "QUERY", "SOURCE",
)  # fmt: skip
OPEN = {"/health"}
OPEN_OF_ADMIN = {"/livez", "/readyz"}
AT_ONCE = 25
"""Requests on one connection, one behind the other; each is answered before the next is looked at."""
PATHS = sorted({*DATA_ROUTES, *(path for _, path in ADMIN_ROUTES), "/nothing", "/v1/", "/docs", "/admin"})


def _spellings(path: str) -> Iterator[str]:
    """Yield targets that a careless router takes for `path`, and the few that mean it."""
    yield from (path, f"{path}?key=1", f"http://other{path}")
    yield from (f"{path}/", f"{path}//", f"/{path}", f"{path}/.", f"{path}/..", f"/.{path}", f"/..{path}")
    yield from (f"{path};x", f"{path}%20", f"{path}%00", f"{path}%3f", f"{path}%23", f"{path}.json")
    yield from (path.upper(), path.replace("/", "%2f"), path.replace("/", "/%2e/"), path.replace("/", "\\"))
    yield from (f"/health{path}", f"/health/..{path}", f"/health;{path}", f"/health%2f..{path}", f"/livez/..{path}")
    if path != "/":
        yield f"/%{ord(path[1]):02x}{path[2:]}"
        yield f"/%25{ord(path[1]):02x}{path[2:]}"


def _path(target: str) -> str:
    """Return the path that a target names, nothing of it decoded."""
    return urlsplit(target).path if target.startswith("http:") else target.partition("?")[0]


def _request(method: str, target: str, key: str | None, *, last: bool) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: x"]
    lines += [] if key is None else [f"Authorization: Bearer {key}"]
    lines += ["Connection: close"] if last else []
    return "\r\n".join([*lines, "", ""]).encode()


async def _walk(port: int, key: str | None) -> dict[tuple[str, str], int]:
    """Return the status of every method on every path, and of GET on every spelling."""
    asked = {(method, path) for path in PATHS for method in METHODS}
    asked |= {("GET", target) for path in PATHS for target in _spellings(path)}
    order = sorted(item for item in asked if item[1].startswith(("/", "http:")))
    statuses: dict[tuple[str, str], int] = {}
    for start in range(0, len(order), AT_ONCE):
        batch = order[start : start + AT_ONCE]
        sent = b"".join(_request(*item, key, last=item is batch[-1]) for item in batch)
        told = answers(await talk(port, sent), (method for method, _ in batch))
        statuses |= zip(batch, (answer.status for answer in told), strict=True)
    return statuses


async def test_without_a_key_nothing_is_open_but_what_is_open_by_name(tmp_path: Path) -> None:
    async with house(tenant(tmp_path, "acme")) as gate:
        statuses = await _walk(gate.port, None)
        assert len(statuses) > 800
        open_ = {item: status for item, status in statuses.items() if _path(item[1]) in OPEN}
        assert statuses == dict.fromkeys(statuses, 401) | open_
        assert {method: status for (method, target), status in open_.items() if target == "/health"} == (
            dict.fromkeys(METHODS, 405) | {"GET": 200, "HEAD": 200, "OPTIONS": 204}
        )


async def test_with_a_key_no_other_spelling_reaches_a_route(tmp_path: Path) -> None:
    async with house(tenant(tmp_path, "acme")) as gate:
        statuses = await _walk(gate.port, "acme-key")
    for (method, target), status in statuses.items():
        route = DATA_ROUTES.get(_path(target))
        known = route is not None and method in route.methods
        assert (method, target, status == 404) == (method, target, route is None)
        assert (method, target, status == 405) == (method, target, route is not None and not known)


async def test_the_admin_listener_is_walked_likewise(tmp_path: Path) -> None:
    token = digest_file(tmp_path / "token", "operator")
    async with house(f'[server]\nadmin_token_file = "{token}"\n') as gate:
        statuses = await _walk(_admin_port(gate), None)
        open_ = {item: status for item, status in statuses.items() if _path(item[1]) in OPEN_OF_ADMIN}
        assert statuses == dict.fromkeys(statuses, 401) | open_
        for (method, target), status in open_.items():
            assert (method, target, status) == (method, target, 200 if method in {"GET", "HEAD"} else 405)
        known = {(method, path) for method, path in ADMIN_ROUTES} | {("HEAD", path) for _, path in ADMIN_ROUTES}
        for (method, target), status in (await _walk(_admin_port(gate), "operator")).items():
            served = (method, _path(target)) in known
            assert served or (method, target, status in {404, 405}) == (method, target, True)


def _admin_port(gate: House) -> int:
    return int(gate.admin.rpartition(":")[2])
