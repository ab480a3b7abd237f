"""The rig of one run: who is measured, by whom, and where the figures go."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dataplane.driving import Clients, Driver, Seen
from dataplane.figures import Figures
from dataplane.gateway import Gateway
from dataplane.processes import NotRunningError
from dataplane.proxies import Place, Proxy

LLMSHED = "llmshed"
NGINX = "nginx"
"""The yardstick."""


@dataclass(slots=True)
class Rig:
    """Everything that a measure needs.

    Args:
        place: where further proxies may be started.
        driver: starts clients.
        proxies: who runs, by name; all have the same core and replica.
        rounds: how often each measure is taken of each.
    """

    place: Place
    driver: Driver
    proxies: dict[str, Proxy | Gateway]
    rounds: int
    figures: Figures = field(default_factory=Figures)
    began: float = field(default_factory=time.monotonic)

    def drive(self, proxy: Proxy | Gateway, warm_seconds: float, seconds: float, *clients: Clients) -> tuple[Seen, ...]:
        """Let clients ask a proxy.

        Raises:
            NotRunningError: the proxy ended.
        """
        return self.driver.drive(proxy.port, proxy.program, warm_seconds, seconds, *clients)

    def proxy(self, name: str) -> Proxy | Gateway:
        """Return a proxy that runs.

        Raises:
            NotRunningError: it does not.
        """
        if name not in self.proxies:
            raise NotRunningError(f"{name} does not run")
        return self.proxies[name]

    def take_rounds(self, take: Callable[[int, str, Proxy | Gateway], None]) -> None:
        """Take a measure of every proxy in turn, round after round; one that ends is left out from then on."""
        for number in range(1, self.rounds + 1):
            for name, proxy in tuple(self.proxies.items()):
                try:
                    take(number, name, proxy)
                except NotRunningError as error:
                    del self.proxies[name]
                    self.miss(name, str(error))

    def place_of(self, name: str) -> Place:
        """Return a place of its own for one more proxy, on the same core and before the same replica."""
        folder = self.place.folder / name
        folder.mkdir()
        return replace(self.place, folder=folder)

    def miss(self, what: str, why: str) -> None:
        """Note why something is not measured."""
        self.figures.miss(what, why)
        self.say(f"{what} is not measured: {why}")

    def say(self, sentence: str) -> None:
        """Tell how far the run is."""
        print(f"{time.monotonic() - self.began:5.0f} s  {sentence}", flush=True)
