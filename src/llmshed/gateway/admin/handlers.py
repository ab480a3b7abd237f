"""The admin listener's routes: what an operator asks of a running gateway. None of them is on the data listener."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any

from aiohttp import web

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError
from llmshed.gateway.admin.classification import classified
from llmshed.gateway.admin.ledgers import pools_report, replicas_report
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.daemon.reload import ReloadResult
from llmshed.gateway.door.answers import json_answer
from llmshed.gateway.door.auth import presented_key
from llmshed.gateway.door.body import parse_body
from llmshed.gateway.door.intake import read_body
from llmshed.observability.decisions import MAX_LISTED
from llmshed.observability.ladder_gauges import evaluations_of
from llmshed.observability.observer import CONTENT_TYPE

STATE_SCHEMA = "llmshed.state/1"
DECISIONS_SCHEMA = "llmshed.decisions/1"
READY_SCHEMA = "llmshed.ready/1"
CLASSIFY_SCHEMA = "llmshed.classify/1"
RELOAD_SCHEMA = "llmshed.reload/1"
DEFAULT_LISTED = 100
DECISION_PREFIX = "/admin/decisions/"
"""Of the paths of single requests, each followed by a request id."""


@dataclass(frozen=True, slots=True)
class Administration:
    """A gateway and what only its operator may do with it.

    Args:
        gateway: the gateway.
        reload: reads its configuration again, as somebody asked, and takes it if it is valid.
    """

    gateway: Gateway
    reload: Callable[[str], Awaitable[ReloadResult]]


async def metrics(house: Administration, request: web.BaseRequest) -> web.Response:
    """Return all metrics in Prometheus's text format."""
    del request
    pools = house.gateway.snapshot.config.pools
    configured = tuple((replica.name, pool.name) for pool in pools for replica in pool.replicas)
    house.gateway.observer.ladder_files(writable=house.gateway.ladder_book.trouble is None)
    evaluations = evaluations_of(house.gateway.policy.pools, house.gateway.evaluations.stale)
    body = await house.gateway.observer.scrape(house.gateway.driver.state(), configured, evaluations)
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})


async def livez(house: Administration, request: web.BaseRequest) -> web.Response:
    """Answer 200: a loop that answers is alive, whatever its replicas do."""
    del house, request
    return web.Response(text="ok\n")


async def readyz(house: Administration, request: web.BaseRequest) -> web.Response:
    """Answer 200 while requests are taken, else 503; `?verbose` lists the checks."""
    checks = house.gateway.checks()
    ready = all(checks.values())
    status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
    if "verbose" in request.query:
        return json_answer({"schema": READY_SCHEMA, "ready": ready, "checks": checks}, status=status)
    failing = ", ".join(name for name, holds in checks.items() if not holds)
    return web.Response(status=status, text="ok\n" if ready else f"not ready: {failing}\n")


async def state(house: Administration, request: web.BaseRequest) -> web.Response:
    """Return every ledger and queue as it stands."""
    del request
    return json_answer({"schema": STATE_SCHEMA, **state_report(house.gateway)})


def state_report(gateway: Gateway) -> dict[str, Any]:
    """Return the gateway's state as plain values, for `/admin/state` and for SIGUSR1."""
    ledgers, checks = gateway.driver.state(), gateway.checks()
    return {
        "config_version": gateway.snapshot.version,
        "ready": all(checks.values()),
        "checks": checks,
        "mode": gateway.snapshot.config.admission.mode,
        "draining": ledgers.draining,
        "requests_in_house": gateway.running(),
        "live_requests": ledgers.live_requests,
        "uncharged_requests": gateway.driver.uncharged,
        "counting": {
            "small_queue_bytes": gateway.counting.small_queue_bytes,
            "large_queue_bytes": gateway.counting.large_queue_bytes,
        },
        "arrivals": ledgers.arrivals,
        "amplification": ledgers.amplification,
        "pools": pools_report(ledgers, gateway.clock.now()),
        "replicas": replicas_report(ledgers),
        "served_counts": gateway.fleet.served_counts.report(),
        "troubles": gateway.fleet.troubles,
        "violations": gateway.driver.violations(),
    }


async def decisions(house: Administration, request: web.BaseRequest) -> web.Response:
    """Return the last decisions with their equations, newest first; `?n=` says how many, `?request_id=` which one."""
    wanted = request.query.get("request_id")
    if wanted is not None:
        return json_answer({"schema": DECISIONS_SCHEMA, "decisions": house.gateway.decision_log.find(wanted)})
    number = number_asked(request, MAX_LISTED)
    return json_answer({"schema": DECISIONS_SCHEMA, "decisions": house.gateway.decision_log.last(number)})


def number_asked(request: web.BaseRequest, most: int) -> int:
    """Return how many are asked for by `?n=`; `most` is told as what there is at most.

    Raises:
        BodyError: it is no whole number from 1.
    """
    number = request.query.get("n", str(DEFAULT_LISTED))
    if not (number.isascii() and number.isdigit() and len(number) <= 7 and int(number) >= 1):
        raise BodyError(Reason.MALFORMED, f"n: must be a whole number from 1; at most {most} are listed", "n")
    return int(number)


async def decision(house: Administration, request: web.BaseRequest) -> web.Response:
    """Return what was decided on the requests of one id, newest first; 404 when none of them is remembered."""
    wanted = request.rel_url.raw_path.removeprefix(DECISION_PREFIX)
    found = house.gateway.decision_log.find(wanted)
    if not found:
        message = "No request of this id is among the last ones that ended; `server.decision_history` says how many."
        raise BodyError(Reason.NOT_FOUND, message)
    return json_answer({"schema": DECISIONS_SCHEMA, "decisions": found})


async def reload(house: Administration, request: web.BaseRequest) -> web.Response:
    """Read the configuration again, and say what came of it: 200 when it is in force, 400 when the old one is kept."""
    result = await house.reload(who_asks(house, request))
    status = HTTPStatus.OK if result.in_force else HTTPStatus.BAD_REQUEST
    return json_answer({"schema": RELOAD_SCHEMA, **asdict(result)}, status=status)


async def classify(house: Administration, request: web.BaseRequest) -> web.Response:
    """Say what would become of a request now; nothing is charged and nothing is sent."""
    body = parse_body(await read_body(request, house.gateway.snapshot.config.server, house.gateway.clock.now))
    return json_answer({"schema": CLASSIFY_SCHEMA, **await classified(house.gateway, body)})


def who_asks(house: Administration, request: web.BaseRequest) -> str:
    """Return where an act comes from: the address, and by which token, of which only a short digest is told."""
    place = request.remote or "local socket"
    key = presented_key(request.headers) if house.gateway.snapshot.admin.asks_for_token else None
    return place if key is None else f"{place} token {hashlib.sha256(key.encode()).hexdigest()[:8]}"
