"""The way in for every request of the admin listener: its token, its table, its errors."""

from aiohttp import web

from llmshed.admission.reasons import Reason
from llmshed.config.addresses import Address
from llmshed.engines.base import BodyError, Dialect
from llmshed.gateway.admin.handlers import Administration
from llmshed.gateway.admin.pages import refuse_pages_of_elsewhere
from llmshed.gateway.admin.routes import ADMIN_ROUTES, OPEN_PATHS, AdminHandler, table_path
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.contract.request_ids import request_id_of
from llmshed.gateway.door.auth import presented_key
from llmshed.gateway.door.gates import check_framing, check_headers
from llmshed.gateway.door.problems import RefusedError, problem_of


class AdminDoor:
    """The handler of the admin listener."""

    def __init__(self, house: Administration) -> None:
        """Let requests at the administration of a gateway."""
        self._house = house

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve one request; its errors are told as on TGI's own routes."""
        well_framed = False
        try:
            check_framing(request)
            check_headers(request, self._house.gateway.snapshot.config.server)
            well_framed = True
            return await self._handler(request)(self._house, request)
        except ConnectionError:
            raise  # the client left: there is nobody to answer
        except Exception as error:  # noqa: BLE001 - every other error has its answer in the contract
            problem = problem_of(error)
        contract = self._house.gateway.snapshot.contract
        answer = contract.refusal(problem, Dialect.NATIVE, request_id_of(request.headers))
        response = web.Response(status=answer.status, headers=answer.headers, body=answer.body)
        if not request.content.is_eof() or not well_framed:
            response.force_close()
        return response

    def _check_right(self, request: web.BaseRequest) -> None:
        """Let in the bearer of the token; where there is none, everybody on this machine but pages in its browsers.

        Raises:
            BodyError: `unauthenticated`, or `forbidden`.
        """
        snapshot = self._house.gateway.snapshot
        if not snapshot.admin.asks_for_token:
            refuse_pages_of_elsewhere(request.headers, Address.parse(snapshot.config.server.admin_listen))
        elif not snapshot.admin.allows(presented_key(request.headers)):
            message = "The admin listener needs its token: send `Authorization: Bearer TOKEN`."
            raise BodyError(Reason.UNAUTHENTICATED, message)

    def _handler(self, request: web.BaseRequest) -> AdminHandler:
        path = table_path(request.rel_url.raw_path)
        if path not in OPEN_PATHS:
            self._check_right(request)
        method = "GET" if request.method == "HEAD" else request.method
        handler = ADMIN_ROUTES.get((method, path))
        if handler is not None:
            return handler
        taken = tuple(sorted(known for known, route in ADMIN_ROUTES if route == path))
        if taken:
            message = f"This route takes {', '.join(taken)}."
            raise RefusedError(Problem(Reason.METHOD_NOT_ALLOWED, message, allow=taken))
        known = ", ".join(sorted({route for _, route in ADMIN_ROUTES}))
        raise BodyError(Reason.NOT_FOUND, f"There is no such route on the admin listener. Routes: {known}.")
