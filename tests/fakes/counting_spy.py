"""Who counts how often a gateway counts tokens."""

from typing import Any

from fakes.house import House


class CountingSpy:
    """Counts the calls to a gateway's counting pool, which go through."""

    def __init__(self, gate: House) -> None:
        pool = gate.daemon.gateway.counting
        self.calls = 0
        self._count = pool.count
        pool.count = self.count  # type: ignore[method-assign]  # the pool of one test

    async def count(self, *args: Any, **named: Any) -> Any:
        self.calls += 1
        return await self._count(*args, **named)
