"""What the load generator itself costs, and whether its clock can be believed, at several numbers of paced streams.

A replica that costs next to nothing sends each of N streams 50 events a second; the generator follows all of them on
one event loop and one core. Told are the CPU time of that thread for an event, which depends little on what else the
machine does, the share of a core that all streams take by it, the gaps between events against the 20 ms of the
replica, and what the generator says of itself. Run it alone: `python bench/generator.py [STREAMS ...]`; it takes a
minute. `--first-in-line` lets it and the replica run before all other programs, where that is allowed.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from urllib.error import URLError
from urllib.request import urlopen

import orjson
import uvloop
from dataplane.building import built
from dataplane.processes import free_port

from llmshed.clock import SystemClock
from llmshed.engines.base import EngineRequest
from llmshed.engines.registry import readable_engine
from llmshed.loadtest.client import Client
from llmshed.loadtest.meter import Doing, Meter
from llmshed.loadtest.open_loop import OpenLoop, Visit
from llmshed.loadtest.plan import Planned
from llmshed.loadtest.prompts import PromptMaker
from llmshed.loadtest.wire import ChatWire
from llmshed.tokenizing.load import find
from llmshed.workload.asks import Ask, Outcome
from llmshed.workload.clients import ClientModel
from llmshed.workload.sketch import QuantileSketch

PACE_MS = 20
TOKENS = 400
START_SECONDS = 2.0
"""All streams begin within this, evenly."""
STREAMS = (50, 100, 200, 400)
ROUNDS = 3


class PacedWire(ChatWire):
    """Asks the bench's replica for a pace."""

    def request(self, ask: Ask, text: str) -> EngineRequest:
        """Return the chat with the time between two events where the replica looks for it."""
        plain = super().request(ask, text)
        return EngineRequest(plain.path, orjson.dumps({**orjson.loads(plain.body), "seed": PACE_MS}))


@contextmanager
def replica() -> Iterator[str]:
    """Run the replica on a free port."""
    port = free_port()
    with subprocess.Popen([str(built("replica")), str(port)]) as process:
        try:
            for _ in range(100):
                try:
                    urlopen(f"http://127.0.0.1:{port}/info", timeout=1).close()
                except (URLError, OSError):
                    time.sleep(0.05)
                else:
                    break
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


async def followed(url: str, streams: int, prompts: PromptMaker) -> tuple[float, int, QuantileSketch, Doing]:
    """Follow so many streams; return CPU seconds of the thread, events, their gaps, and how well it did."""
    gaps, visits = QuantileSketch(0.002), list[Visit]()
    meter = Meter(SystemClock())
    asks = (Ask(str(number), 64, TOKENS, runs_to_ceiling=True, lane=None) for number in range(streams))
    plan = (Planned(number * START_SECONDS / streams, ask, (), {}) for number, ask in enumerate(asks))
    async with Client(url, readable_engine("tgi"), PacedWire("m"), prompts, SystemClock()) as client:
        rng = Random(0)  # noqa: S311 - nobody is refused
        loop = OpenLoop(client, meter, ClientModel.NONE, rng, visits.append)
        before = time.thread_time()
        await loop.run(plan)
        cpu = time.thread_time() - before
    for visit in visits:
        sample = visit.last.sample
        if sample.outcome is not Outcome.FINISHED or len(sample.token_times) != TOKENS:
            sys.exit(f"a stream ended {sample.outcome} after {len(sample.token_times)} events: {sample.detail}")
        for gap in sample.itl_seconds:
            gaps.add(gap)
    return cpu, streams * TOKENS, gaps, meter.doing()


def main() -> None:
    """Take all rounds, numbers of streams in turn, and print the best of each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("streams", nargs="*", type=int, default=STREAMS)
    parser.add_argument("--first-in-line", action="store_true")
    options = parser.parse_args()
    if options.first_in_line:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    prompts = PromptMaker(find("embedded"), "tgi", chat=True, seed=0)
    best: dict[int, tuple[float, QuantileSketch, Doing]] = {}
    with replica() as url, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for _ in range(ROUNDS):
            for streams in options.streams:
                cpu, events, gaps, doing = runner.run(followed(url, streams, prompts))
                cost = cpu / events * 1e6
                if streams not in best or cost < best[streams][0]:
                    best[streams] = cost, gaps, doing
    print(f"{TOKENS} events a stream at {1000 / PACE_MS:g} a second; the cheapest of {ROUNDS} rounds")
    print(
        "| streams | CPU us an event | share of a core | ITL p50 | ITL p99 | sends late p99 | loop lag p99 | limited |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for streams, (cost, gaps, doing) in best.items():
        share = cost * 1e-6 * streams * 1000 / PACE_MS
        middle, late = gaps.quantiles((0.5, 0.99))
        figures = (middle or 0, late or 0, doing.lateness_p99 or 0, doing.lag_p99 or 0)
        told = " | ".join(f"{1000 * figure:.2f} ms" for figure in figures)
        print(f"| {streams} | {cost:.1f} | {share:.0%} | {told} | {'yes' if doing.generator_limited else 'no'} |")


if __name__ == "__main__":
    main()
