"""Where pools stand on their ladders, read from the core's snapshot at the scrape; pools without one have no series."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from llmshed.admission.policy import PoolPolicy
from llmshed.admission.state import PoolState
from llmshed.ladder.paths import changing
from llmshed.ladder.staleness import Stale, Why
from llmshed.ladder.standing import Standing

Evaluations = Mapping[tuple[str, str], frozenset[Why]]
"""What is wrong with the evaluation of each rung that changes answers, by pool and rung; empty for nothing."""

_GAUGES: tuple[tuple[str, str, Callable[[Standing], float]], ...] = (
    ("llmshed_ladder_rung", "Number of the rung in force, 0 for none.", lambda standing: standing.rung),
    (
        "llmshed_ladder_by_rule_rung",
        "Number of the rung by the rule alone, whatever is held.",
        lambda standing: standing.by_rule,
    ),
    ("llmshed_ladder_held", "Whether a person holds a rung.", lambda standing: standing.hold is not None),
    (
        "llmshed_ladder_signal_seconds",
        "Queue delay signal of the last whole window, p95; 0 where nobody came.",
        lambda standing: 0.0 if standing.window is None else standing.window.signal_seconds or 0.0,
    ),
    (
        "llmshed_ladder_objective_seconds",
        "What the signal is held against.",
        lambda standing: math.nan if standing.window is None else standing.window.objective_seconds,
    ),
)


def ladder_gauges(pools: Iterable[PoolState], evaluations: Evaluations) -> Iterator[Metric]:
    """Yield the families of all pools that have a ladder, one after the other."""
    standings = [(pool.name, pool.ladder) for pool in pools if pool.ladder is not None]
    for name, meaning, value in _GAUGES:
        family = GaugeMetricFamily(name, meaning, labels=("pool",))
        for pool, standing in standings:
            family.add_metric((pool,), float(value(standing)))
        yield family
    stale = GaugeMetricFamily(
        "llmshed_ladder_evaluation_stale",
        "Whether the evaluation of a rung's path does not hold any more, by why.",
        labels=("pool", "rung", "why"),
    )
    for (pool, rung), wrong in evaluations.items():
        for why in Why:
            stale.add_metric((pool, rung, why), float(why in wrong))
    yield stale


def evaluations_of(pools: Iterable[PoolPolicy], stale: Callable[[str], Iterable[Stale]]) -> Evaluations:
    """Return what is wrong with the evaluations of all ladders; `stale` tells it of a pool, by its name."""
    told: dict[tuple[str, str], frozenset[Why]] = {}
    for pool in pools:
        if pool.ladder is None:
            continue
        wrong = tuple(stale(pool.name))
        for rung in changing(pool.ladder):
            told[pool.name, rung.name] = frozenset(one.why for one in wrong if one.rung == rung.name)
    return told
