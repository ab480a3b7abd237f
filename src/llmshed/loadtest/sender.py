"""Sends the asks of a closed loop to a replica."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from llmshed.loadtest.stock import Stock

if TYPE_CHECKING:
    from llmshed.admission.signals.readings import ReplicaReading
    from llmshed.loadtest.client import Client
    from llmshed.loadtest.meter import Meter
    from llmshed.workload.asks import Ask, Sample


class ReplicaSender:
    """What `driver.run` sends by; `close` it afterwards.

    Args:
        client: the replica.
        meter: counts how far sends were behind their instant.
    """

    def __init__(self, client: "Client", meter: "Meter") -> None:
        self._client = client
        self._meter = meter
        self._stock = Stock(client.prompts)

    async def carry(self, ask: "Ask", planned_at: float, on_first_token: Callable[[], None]) -> "Sample":
        """Send an ask and return what came of it; cancelled, it returns what had come by then.

        Raises:
            PromptError: its prompt cannot be made.
        """
        exchange = self._client.exchange(ask, planned_at, on_first_token=on_first_token)
        try:
            text = await self._stock.text(ask)
            await self._client.carry_out(exchange, self._client.wire.request(ask, text))
        except asyncio.CancelledError:
            return exchange.reply().sample
        sample = exchange.reply().sample
        self._meter.sent(sample.sent_at - planned_at)
        return sample

    async def read(self) -> "ReplicaReading":
        """Read the replica's signals.

        Raises:
            EngineError: they cannot be read.
        """
        return await self._client.read()

    async def close(self) -> None:
        """End what was being prepared."""
        await self._stock.close()
