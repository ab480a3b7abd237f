"""The way in for every request of the data listener: who it is, where it goes, what it is told, what is written down.

Whatever happens inside, a request that came in here leaves with one answer, if its client is still there to get it,
and with one decision line.
"""

import asyncio
from dataclasses import replace
from http import HTTPStatus

from aiohttp import web

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError
from llmshed.gateway.contract.answer_headers import common_headers
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.door.auth import presented_key
from llmshed.gateway.door.gates import check_framing, check_headers
from llmshed.gateway.door.pages import refuse_pages_of_elsewhere
from llmshed.gateway.door.problems import RefusedError, problem_of
from llmshed.gateway.door.routes import DATA_ROUTES, OPEN_PATHS, DataHandler
from llmshed.gateway.door.visit import Visit

_WATCHED_ONLY_WHEN_REFUSED = frozenset({"GET", "HEAD", "OPTIONS"})
"""Probes and look-ups come by the second: they are written down only when they are refused."""


class DataDoor:
    """The handler of the data listener."""

    def __init__(self, gateway: Gateway) -> None:
        """Let requests into `gateway`."""
        self._gateway = gateway

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve one request to its end."""
        gateway = self._gateway
        visit = Visit(request, gateway.clock.now(), gateway.clock.wall(), gateway.snapshot)
        watched = request.method not in _WATCHED_ONLY_WHEN_REFUSED
        if watched:
            gateway.observer.request_began()
        gateway.enter(visit)
        try:
            return await self._served(visit)
        finally:
            gateway.leave(visit)
            if watched or visit.problem is not None:
                if not watched:
                    gateway.observer.request_began()
                gateway.observer.request_ended(visit.decision(gateway.clock.now()))

    async def _served(self, visit: Visit) -> web.StreamResponse:
        try:
            handler = self._admit_to_route(visit)
            response = await handler(self._gateway, visit)
        except asyncio.CancelledError:
            if not visit.broken_off or not visit.client_is_here:
                raise
            _uncancel()
            return self._refusal(visit, Problem(Reason.DRAINING, "This gateway is shutting down."))
        except ConnectionError:
            raise  # the client left: there is nobody to answer
        except Exception as error:
            problem = problem_of(error)
            if visit.request.writer.output_size > 0:
                visit.problem = problem
                raise ConnectionError("an answer was begun; the connection ends with it") from error
            return self._refusal(visit, problem)
        if not visit.relaying:
            visit.status = response.status
        return response

    def _admit_to_route(self, visit: Visit) -> DataHandler:
        """Return the handler for path and method, for whom has a right to it."""
        request = visit.request
        check_framing(request)
        check_headers(request, visit.snapshot.config.server)
        visit.well_framed = True
        if visit.path not in OPEN_PATHS:
            if request.method == "POST" and not visit.snapshot.keys.asks_for_keys:
                refuse_pages_of_elsewhere(request.headers, visit.snapshot.config.server)
            visit.tenant = visit.snapshot.keys.tenant(presented_key(request.headers))
            if visit.tenant is None:
                raise BodyError(Reason.UNAUTHENTICATED, "This endpoint needs a key: send `Authorization: Bearer KEY`.")
        route = DATA_ROUTES.get(visit.path)
        if route is None:
            raise BodyError(Reason.NOT_FOUND, "There is no such route here; see /v1/llmshed/limits for what there is.")
        match request.method:
            case "GET" | "HEAD":
                handler = route.get
            case "POST":
                handler = route.post
            case "OPTIONS":
                handler = _options
            case _:
                handler = None
        if handler is None:
            allow = route.methods
            message = f"This route takes {', '.join(allow)}."
            raise RefusedError(Problem(Reason.METHOD_NOT_ALLOWED, message, allow=allow))
        return handler

    def _refusal(self, visit: Visit, problem: Problem) -> web.Response:
        """Answer a problem; a connection that is not at a clean boundary after it cannot be used again."""
        if problem.model is None and visit.model is not None and problem.reason is not Reason.NOT_FOUND:
            problem = replace(problem, model=visit.model)
        if (
            visit.degradations and not problem.degradations
        ):  # what failed before the core saw it may well fail for what a rung did
            problem = replace(problem, degradations=visit.degradations)
        visit.problem = problem
        request = visit.request
        answer = visit.snapshot.contract.refusal(
            problem, visit.dialect, visit.request_id, request.headers.get("Accept"), visit.timings()
        )
        visit.status = answer.status
        visit.told_wait_seconds = answer.retry_after_seconds
        response = web.Response(status=answer.status, headers=answer.headers, body=answer.body)
        if not request.content.is_eof() or not visit.well_framed or self._gateway.draining:
            response.force_close()
        return response


async def _options(gateway: Gateway, visit: Visit) -> web.Response:
    """Tell which methods a route takes; browsers of other origins are not let in."""
    del gateway
    allow = ", ".join(DATA_ROUTES[visit.path].methods)
    return web.Response(status=HTTPStatus.NO_CONTENT, headers=common_headers(visit.request_id) | {"allow": allow})


def _uncancel() -> None:
    """Take the gateway's own cancellation back, so that the answer can be written."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
