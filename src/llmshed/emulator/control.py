"""The routes of the emulator itself, for tests and drills: `/_simulate/faults` and `/_simulate/state`."""

import ipaddress
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

import orjson
from aiohttp import web

from llmshed.emulator.failures import json_answer
from llmshed.emulator.faults import FaultOrder, read_order
from llmshed.emulator.replica import Replica


class ControlRoutes:
    """Switches faults and tells what the engine holds; answers loopback only."""

    def __init__(self, replica: Replica, refuse: Callable[[float], Awaitable[None]]) -> None:
        """Take the replica, and how its listener is closed for some seconds."""
        self._replica = replica
        self._refuse = refuse

    async def state(self, request: web.Request) -> web.StreamResponse:
        """Answer `GET /_simulate/state`."""
        _loopback_only(request)
        return json_answer(self._state())

    async def faults(self, request: web.Request) -> web.StreamResponse:
        """Answer `GET /_simulate/faults`: the plan in force."""
        _loopback_only(request)
        return json_answer(self._replica.faults.plan.model_dump())

    async def order(self, request: web.Request) -> web.StreamResponse:
        """Answer `POST /_simulate/faults`: take an order and tell the plan in force."""
        _loopback_only(request)
        try:
            order = read_order(orjson.loads(await request.read()))
        except orjson.JSONDecodeError as error:
            return json_answer({"error": f"not JSON: {error}"}, 400)
        except ValueError as error:
            return json_answer({"error": str(error)}, 400)
        await self._obey(order)
        return json_answer(self._replica.faults.plan.model_dump())

    async def _obey(self, order: FaultOrder) -> None:
        if order.plan is not None:
            self._replica.faults.plan = order.plan
        if order.stall_seconds is not None:
            self._replica.engine.stall(order.stall_seconds)
        if order.fail_batch is not None:
            self._replica.engine.fail_batch(order.fail_batch)
        if order.refuse_seconds is not None:
            await self._refuse(order.refuse_seconds)

    def _state(self) -> dict[str, Any]:
        replica, engine = self._replica, self._replica.engine
        requests = {key: live for live in replica.live.values() for key in live.keys}
        sequences = []
        for view in sorted(engine.sequences(), key=lambda view: view.key):
            live = requests.get(view.key)
            told = {"request": live.number, "request_id": live.request_id, "route": live.route} if live else {}
            sequences.append({**asdict(view), "phase": view.phase.value, **told})
        return {
            "sequences": sequences,
            "kv_tokens_held": engine.held_kv_tokens,
            "kv_tokens": replica.settings.parameters.kv_tokens,
            "permits_in_use": engine.permits_in_use,
            "queue_size": engine.queue_size,
            "batch_size": engine.batch_size,
            "requests_live": len(replica.live),
            "requests_received_total": replica.received_total,
            "requests_finished_total": replica.finished_total,
            "requests_failed_total": replica.failed_total,
            "requests_cancelled_total": replica.cancelled_total,
            "broken_invariants": list(engine.check()),
        }


def _loopback_only(request: web.Request) -> None:
    try:
        allowed = request.remote is not None and ipaddress.ip_address(request.remote).is_loopback
    except ValueError:
        allowed = False
    if not allowed:
        raise web.HTTPForbidden(text="the emulator is controlled from its own machine only")
