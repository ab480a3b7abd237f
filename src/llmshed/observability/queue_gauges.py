"""What waits, and how long it is expected to: by pool, lane and priority class, read at the scrape."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from llmshed.admission.request import service_rank
from llmshed.admission.state import PoolState, QueueState

_LABELS = ("pool", "lane", "priority_class")

# name, meaning and source of each gauge that every queue has
_GAUGES: tuple[tuple[str, str, Callable[[PoolState, QueueState], float]], ...] = (
    ("llmshed_queue_depth", "Requests that wait.", lambda _, queue: queue.requests),
    ("llmshed_queued_tokens", "Reserved tokens of requests that wait.", lambda _, queue: queue.tokens),
    ("llmshed_queued_prefill_tokens", "Prompt tokens of requests that wait.", lambda _, queue: queue.input_tokens),
    (
        "llmshed_delay_factor",
        "Learnt factor of the delay estimate.",
        lambda pool, queue: pool.factors[service_rank(queue.lane, queue.priority_class)],
    ),
    (
        "llmshed_promised_seconds",
        "Time until the room that refused requests were promised has come free.",
        lambda pool, queue: pool.promised_seconds[service_rank(queue.lane, queue.priority_class)],
    ),
)


def queue_gauges(pools: Iterable[PoolState]) -> Iterator[Metric]:
    """Yield the families of all pools, one after the other."""
    pools = tuple(pools)
    for name, meaning, value in _GAUGES:
        family = GaugeMetricFamily(name, meaning, labels=_LABELS)
        for pool in pools:
            for queue in pool.queues:
                family.add_metric((pool.name, queue.lane, queue.priority_class), float(value(pool, queue)))
        yield family
    ages = GaugeMetricFamily(
        "llmshed_queue_oldest_age_seconds", "How long the oldest request has waited.", labels=("pool", "lane")
    )
    ghosts = GaugeMetricFamily(
        "llmshed_ghost_requests", "Refused requests that are followed until they would have fit.", labels=("pool",)
    )
    ended = CounterMetricFamily(
        "llmshed_ghost_requests_ended",
        "Ghosts whose following ended: would have fit, or given up as longer than any estimate.",
        labels=("pool", "outcome"),
    )
    for pool in pools:
        ghosts.add_metric((pool.name,), float(pool.ghosts))
        ended.add_metric((pool.name, "fitted"), float(pool.ghosts_fitted))
        ended.add_metric((pool.name, "given_up"), float(pool.ghosts_given_up))
        for lane, seconds in pool.oldest_age_seconds.items():
            ages.add_metric((pool.name, lane), seconds)
    yield ages
    yield ghosts
    yield ended
