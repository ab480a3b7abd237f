"""How long a scrape of the metrics holds up everything else."""

import http.client
import select
import time
from contextlib import ExitStack
from statistics import median

from dataplane.gateway import Shape, gateway
from dataplane.proxies import replica
from dataplane.rig import LLMSHED, Rig

REPLICAS = 7
"""So many that the page has 900 series."""
_SCRAPES = 40
_SETTLE_SECONDS = 1.0


def measure_scrapes(rig: Rig) -> None:
    """Measure how late the slowest of the small requests is that are sent one after the other while a scrape runs."""
    with ExitStack() as stack:
        core, folder = rig.driver.core, rig.place.folder
        ports = tuple(stack.enter_context(replica(folder, core)) for _ in range(REPLICAS - 1))
        house = stack.enter_context(gateway(rig.place_of("scrapes"), Shape(further_ports=ports)))
        scraper = http.client.HTTPConnection("127.0.0.1", house.admin_port, timeout=10)
        prober = http.client.HTTPConnection("127.0.0.1", house.admin_port, timeout=10)
        series = _settled_series(scraper)
        for number in range(1, rig.rounds + 1):
            alone = [_probe_ms(prober) for _ in range(5 * _SCRAPES)]
            slowest = [_slowest_beside_ms(scraper, prober) for _ in range(_SCRAPES)]
            stall = max(0.0, median(slowest) - median(alone))
            rig.figures.note("scrape", LLMSHED, number, stall_ms=stall, worst_ms=max(slowest), series=series)
            rig.say(f"scrape {number}/{rig.rounds}: {series} series, stall {stall:.2f} ms, worst {max(slowest):.2f} ms")


def _settled_series(scraper: http.client.HTTPConnection) -> int:
    """Return how many series the page has once it grows no more: replicas come up one after the other."""
    before, series = 0, 1
    while series > before:
        time.sleep(_SETTLE_SECONDS)
        scraper.request("GET", "/metrics")
        page = scraper.getresponse().read().splitlines()
        before, series = series, sum(not line.startswith(b"#") for line in page)
    return series


def _probe_ms(prober: http.client.HTTPConnection) -> float:
    began = time.perf_counter()
    prober.request("GET", "/livez")
    prober.getresponse().read()
    return 1e3 * (time.perf_counter() - began)


def _slowest_beside_ms(scraper: http.client.HTTPConnection, prober: http.client.HTTPConnection) -> float:
    scraper.request("GET", "/metrics")
    slowest = 0.0
    while not select.select([scraper.sock], [], [], 0)[0]:
        slowest = max(slowest, _probe_ms(prober))
    scraper.getresponse().read()
    return slowest
