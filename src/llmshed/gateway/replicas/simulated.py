"""Simulated replicas inside the gateway's own process, for a first run without a GPU."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llmshed.emulator import Emulator

_DRAIN_SECONDS = 1.0
"""What a stop waits for answers: the gateway has drained its own side by then."""


class SimulatedReplicas:
    """Starts them on demand and keeps them by name, so that a reload does not cut what they stream."""

    def __init__(self) -> None:
        """Start without any."""
        self._running: dict[str, Emulator] = {}
        self._urls: dict[str, str] = {}

    async def url(self, name: str) -> str:
        """Return the address of the simulated replica of that name, started if it is not running."""
        if name not in self._urls:
            # Imported late: a gateway before real replicas never needs it.
            from llmshed.emulator import Emulator, EmulatorSettings  # noqa: PLC0415 - see above

            emulator = self._running[name] = Emulator(EmulatorSettings(drain_seconds=_DRAIN_SECONDS))
            self._urls[name] = await emulator.start("127.0.0.1", 0)
        return self._urls[name]

    async def stop(self, name: str) -> None:
        """Stop one, if it runs."""
        self._urls.pop(name, None)
        emulator = self._running.pop(name, None)
        if emulator is not None:
            await emulator.stop()

    async def close(self) -> None:
        """Stop all."""
        for name in list(self._running):
            await self.stop(name)
