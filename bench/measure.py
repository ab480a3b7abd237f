"""CPU time of small calls, as medians of interleaved rounds: figures are compared within one run only."""

import time
from collections.abc import Callable, Mapping
from statistics import median

ROUNDS = 7


def cpu_microseconds(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median CPU microseconds of one call of each; rounds alternate, so that noise hits all alike."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            started = time.process_time()
            for _ in range(repeats):
                call()
            samples[name].append((time.process_time() - started) / repeats * 1e6)
    return {name: median(values) for name, values in samples.items()}


def show(title: str, figures: Mapping[str, float], yardstick: str) -> None:
    """Print figures and their ratios to the yardstick among them."""
    print(f"\n{title}")
    for name, value in figures.items():
        print(f"  {name:<44}{value:>12.1f} us{value / figures[yardstick]:>10.2f} x")
