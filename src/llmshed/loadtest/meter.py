"""What the generator itself did wrong: sends behind their plan, a loop that lagged, a core that was full.

A figure of a target is only as good as the clock that took it. Lateness and lag go straight into TTFT and ITL, so both
are bounded by what these are read to; a loop that takes nearly all of its core lags soon.
"""

import asyncio
from dataclasses import dataclass
from time import thread_time
from typing import TYPE_CHECKING, Final

from llmshed.workload.sketch import QuantileSketch

if TYPE_CHECKING:
    from llmshed.clock import Clock

MOST_LATE_SECONDS: Final = 0.010
"""p99 of the sends' lateness: a tenth of the shortest TTFT objective that anybody sets."""
MOST_LAG_SECONDS: Final = 0.010
"""p99 of the loop's lag: half of the shortest gap between tokens that people read along with."""
MOST_CPU_SHARE: Final = 0.9
"""p90 over windows of a second; above it waits grow in the generator, not in the target."""
TICK_SECONDS: Final = 0.02
WINDOW_SECONDS: Final = 1.0
_P90, _P99 = 0.90, 0.99


@dataclass(frozen=True, slots=True)
class Doing:
    """How well the generator did; seconds, None while nothing was measured.

    Args:
        lateness_p50: median of a send behind its planned instant.
        lateness_p99: the same of the latest hundredth.
        lag_p99: event loop behind its timers.
        cpu_p90: share of a core that the loop's thread took, over windows of a second.
        limits: why its figures are its own as much as the target's, one sentence each; empty when they are not.
    """

    lateness_p50: float | None
    lateness_p99: float | None
    lag_p99: float | None
    cpu_p90: float | None
    limits: tuple[str, ...]

    @property
    def generator_limited(self) -> bool:
        """Say whether the figures tell of the generator as much as of the target."""
        return bool(self.limits)


class Meter:
    """Measures the generator while it runs; `watch` is to run beside it, on its event loop.

    Args:
        clock: where instants come from.
        most_late_seconds: p99 of the sends' lateness beyond which it was limited.
    """

    def __init__(self, clock: "Clock", most_late_seconds: float = MOST_LATE_SECONDS) -> None:
        self._clock = clock
        self._most_late_seconds = most_late_seconds
        self._lateness, self._lag, self._cpu = QuantileSketch(), QuantileSketch(), QuantileSketch()
        self._held_back = 0
        self._out_of_files = 0

    def sent(self, lateness_seconds: float) -> None:
        """Count a send and how far it was behind its plan."""
        self._lateness.add(max(0.0, lateness_seconds))

    def held_back(self) -> None:
        """Count a send that had to wait, since as many were in flight as the generator takes."""
        self._held_back += 1

    def out_of_files(self) -> None:
        """Count a send that failed for want of a file descriptor."""
        self._out_of_files += 1

    async def watch(self) -> None:
        """Measure the loop until cancelled."""
        window_from, cpu_from = self._clock.now(), thread_time()
        while True:
            due = self._clock.now() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            now = self._clock.now()
            self._lag.add(max(0.0, now - due))
            if now - window_from >= WINDOW_SECONDS:
                cpu = thread_time()
                self._cpu.add(max(0.0, cpu - cpu_from) / (now - window_from))
                window_from, cpu_from = now, cpu

    def doing(self) -> Doing:
        """Return how well it did so far."""
        late_p50, late_p99 = self._lateness.quantiles((0.5, _P99))
        lag_p99, cpu_p90 = self._lag.quantile(_P99), self._cpu.quantile(_P90)
        return Doing(late_p50, late_p99, lag_p99, cpu_p90, tuple(self._limits(late_p99, lag_p99, cpu_p90)))

    def _limits(self, late: float | None, lag: float | None, cpu: float | None) -> list[str]:
        limits = []
        most = self._most_late_seconds
        if late is not None and late > most:
            limits.append(f"a hundredth of the sends was {_ms(late)} or more behind its plan ({_ms(most)})")
        if lag is not None and lag > MOST_LAG_SECONDS:
            limits.append(f"its event loop lagged by {_ms(lag)} in a hundredth of its turns ({_ms(MOST_LAG_SECONDS)})")
        if cpu is not None and cpu > MOST_CPU_SHARE:
            limits.append(f"it took {cpu:.0%} of a core in a tenth of the seconds or more ({MOST_CPU_SHARE:.0%})")
        if self._held_back:
            limits.append(f"{self._held_back:,} sends were held back: too many requests were in flight")
        if self._out_of_files:
            limits.append(f"{self._out_of_files:,} sends failed for want of a file descriptor; raise `ulimit -n`")
        return limits


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms"
