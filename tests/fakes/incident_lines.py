"""What a gateway would have exported in an hour, as OpenMetrics lines: calm, then two of three replicas are lost."""

from collections.abc import Iterator

EVERY_SECONDS = 15
_TTFT_EDGES = ("0.1", "0.5", "1.0", "2.5", "5.0", "+Inf")


def hour(site: str, began: int, lost_at: int | None) -> Iterator[tuple[str, str]]:
    """Yield family and line of each sample of an hour; `lost_at` is when the replicas go, None for never."""
    ten_a_second = 10 * EVERY_SECONDS
    admitted = refused = good = 0
    slow = quick = 0
    for at in range(began, began + 3600, EVERY_SECONDS):
        lost = lost_at is not None and at >= lost_at
        served = ten_a_second * (2 if lost else 5) // 5
        admitted += served
        refused += ten_a_second - served if lost else 0
        good += served
        quick += 0 if lost else served
        slow += served if lost else 0
        own = f'site="{site}"'
        lane = f'lane="interactive",{own}'
        yield from _counter(f"llmshed_first_arrivals{{{lane}}}", admitted + refused, at)
        yield from _counter(f'llmshed_client_retries{{kind="repeat",{lane}}}', 0, at)
        yield from _counter(f'llmshed_requests{{decision="admit",reason="none",{lane}}}', admitted, at)
        yield from _counter(
            f'llmshed_requests{{decision="refuse",reason="token_budget_exhausted",{lane}}}', refused, at
        )
        yield from _counter(f'llmshed_objective_requests{{priority_class="normal",{lane}}}', admitted + refused, at)
        yield from _counter(f'llmshed_good_requests{{priority_class="normal",{lane}}}', good, at)
        for number, edge in enumerate(_TTFT_EDGES):
            below = quick + (slow if number >= 4 else 0)
            yield "llmshed_ttft_seconds histogram", f'llmshed_ttft_seconds_bucket{{le="{edge}",{lane}}} {below} {at}'
        for name, value in (
            ("llmshed_active_tokens", 58_000 if lost else 90_000),
            ("llmshed_budget_tokens", 60_000 if lost else 180_000),
        ):
            yield f"{name} gauge", f'{name}{{pool="main",{own}}} {value} {at}'
        yield (
            "llmshed_queue_oldest_age_seconds gauge",
            f"llmshed_queue_oldest_age_seconds{{{lane}}} {0.8 if lost else 0} {at}",
        )
        for replica in "abc":
            up = int(replica == "a" or not lost)
            yield "llmshed_replica_up gauge", f'llmshed_replica_up{{replica="{replica}",{own}}} {up} {at}'


def exposition(*samples: Iterator[tuple[str, str]]) -> list[str]:
    """Return OpenMetrics lines, each family once, with its samples."""
    families: dict[str, list[str]] = {}
    for family, line in (one for source in samples for one in source):
        families.setdefault(family, []).append(line)
    return [text for family, lines in families.items() for text in (f"# TYPE {family}", *lines)]


def _counter(series: str, value: float, at: int) -> Iterator[tuple[str, str]]:
    name, brace, labels = series.partition("{")
    yield f"{name} counter", f"{name}_total{brace}{labels} {value} {at}"
