"""One run: proxies started, measures taken, figures printed and kept."""

import signal
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import FrameType

from dataplane.asking import ROOT
from dataplane.counting_cost import measure_cold, measure_turns
from dataplane.driving import Driver
from dataplane.figures import Figures, to_csv
from dataplane.gateway import Gateway, gateway
from dataplane.isolation import measure_isolation
from dataplane.memory import measure_memory
from dataplane.peers import litellm, sglang_router, smg
from dataplane.processes import NotRunningError, two_cores
from dataplane.proxies import Place, Proxy, aiohttp_proxy, nginx, replica
from dataplane.relay_cost import measure_requests, measure_streams
from dataplane.rig import LLMSHED, NGINX, Rig
from dataplane.scraping import measure_scrapes
from dataplane.starting import measure_start
from dataplane.storm import measure_refusals, measure_storm
from dataplane.tables import put_into, section

ROUNDS = 3
KEPT = ROOT / "bench" / "data" / "dataplane.csv"
PAGE = ROOT / "docs" / "performance.md"
Starts = Mapping[str, Callable[[Place], AbstractContextManager[Proxy | Gateway]]]

FEW: Starts = {NGINX: nginx, "aiohttp": aiohttp_proxy, LLMSHED: gateway}
ALL: Starts = {**FEW, "sglang-router": sglang_router, "smg": smg, "litellm": litellm}
MEASURES: dict[str, Callable[[Rig], None]] = {
    "stream": measure_streams,
    "request": measure_requests,
    "cold": measure_cold,
    "turns": measure_turns,
    "isolation": measure_isolation,
    "refusals": measure_refusals,
    "storm": measure_storm,
    "memory": measure_memory,
    "scrape": measure_scrapes,
    "start": measure_start,
}
_QUICK = ("stream", "request")


def main(arguments: Sequence[str]) -> None:
    """Measure, and print what came of it."""
    parser = ArgumentParser(description="What llmshed costs beside other proxies, as ratios to nginx.")
    parser.add_argument("--quick", action="store_true", help="streams and requests of nginx, aiohttp and llmshed alone")
    parser.add_argument("--only", metavar="MEASURES", help=f"with commas between: {', '.join(MEASURES)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often each is taken (default: {ROUNDS})")
    parser.add_argument("--write", action="store_true", help="keep the figures, and put the table into the page")
    asked = parser.parse_args(arguments)
    measures = asked.only.split(",") if asked.only else _QUICK if asked.quick else tuple(MEASURES)
    if not set(measures) <= MEASURES.keys():
        parser.error(f"--only: choose of {', '.join(MEASURES)}")
    if asked.write and set(measures) != MEASURES.keys():
        parser.error("--write keeps whole runs alone")
    signal.signal(signal.SIGTERM, _leave)  # as Ctrl-C does, so that whatever was started is ended
    try:
        figures = measured(FEW if asked.quick else ALL, measures, asked.rounds)
    except NotRunningError as error:
        sys.exit(f"dataplane: {error}")
    print(f"\n{section(figures)}")
    if asked.write:
        KEPT.write_text(to_csv(figures), encoding="utf-8")
        PAGE.write_text(put_into(PAGE.read_text("utf-8"), figures), encoding="utf-8")


def measured(starts: Starts, measures: Sequence[str], rounds: int) -> Figures:
    """Start proxies and take measures; what cannot be had is noted, and the rest goes on.

    Raises:
        NotRunningError: the clients or the replica cannot be had.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="llmshed-dataplane-")))
        proxy_core, other_core = two_cores()
        driver = Driver(folder, other_core)
        place = Place(folder, proxy_core, stack.enter_context(replica(folder, other_core)))
        proxies: dict[str, Proxy | Gateway] = {}
        rig = Rig(place, driver, proxies, rounds)
        for name, start in starts.items():
            rig.say(f"starting {name}")
            try:
                proxies[name] = stack.enter_context(start(rig.place_of(name)))
            except NotRunningError as error:
                rig.miss(name, str(error))
        for name in measures:
            try:
                MEASURES[name](rig)
            except NotRunningError as error:
                rig.miss(name, str(error))
        return rig.figures


def _leave(number: int, frame: FrameType | None) -> None:
    del frame
    sys.exit(128 + number)
