"""`/health` as TGI answers it: blind to load, slow behind a long step, thorough after a failure."""

import asyncio

from aiohttp import web

from llmshed.emulator.failures import unhealthy
from llmshed.emulator.replica import Replica


class HealthRoutes:
    """Handler of `/health` and its other names."""

    def __init__(self, replica: Replica) -> None:
        """Take the replica to tell of."""
        self._replica = replica

    async def health(self, request: web.Request) -> web.StreamResponse:
        """Answer `GET /health`: an empty 200 once the shards can answer.

        After a generation that failed, TGI has the shards prefill one token before it believes in them again. That
        step takes its time here and delays nobody else.

        Raises:
            TgiError: the fault `unhealthy` is on.
        """
        del request
        engine = self._replica.engine
        await engine.between_steps()
        if self._replica.faults.plan.unhealthy:
            engine.is_sound = False
            raise unhealthy()
        if not engine.is_sound:
            await asyncio.sleep(self._replica.settings.parameters.step_times.step_seconds)
            engine.is_sound = True
        return web.Response()
