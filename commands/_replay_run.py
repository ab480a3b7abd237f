"""Runs `llmshed replay`: reads the source, looks at the target, sends, and counts what comes of it."""

import asyncio
import contextlib
import sys
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from llmshed.workload.arrivals import with_arrivals
from llmshed.workload.ceilings import CeilingRule
from llmshed.workload.clients import ClientModel
from llmshed.workload.scaling import in_time

from ._replay_progress import progress
from ._replay_samples import SampleFile
from ._replay_target import Address, Reached, reached
from ._replay_wishes import Pace
from ._signals import cancel_in_order
from ._whatif_pace import pace_of
from ._whatif_traffic import Part, Traffic, opened_traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from llmshed.loadtest.meter import Doing
    from llmshed.loadtest.open_loop import Visit
    from llmshed.loadtest.plan import Lengths, Prefixes
    from llmshed.loadtest.tally import Tally
    from llmshed.loadtest.yardstick import Yardstick
    from llmshed.workload.request import TracedRequest

PROBE_SHARES = (0.1, 0.95)
"""Of the source's input lengths: between these sizes most requests lie."""
SWITCH_SECONDS = 0.0005
"""How long the thread that makes prompts may keep the interpreter; by default ten times that, which is read as lag."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """Everything that was asked for.

    Args:
        address: where to send.
        source: file that tells lengths and arrivals, or `-`.
        trace_format: kind of it; None to be told by its first line.
        pace: when requests come.
        duration_seconds: how long to send; None for all of the source.
        most_requests: how many of the source are taken; None for all.
        ceiling: where output ceilings come from; None for the default.
        lengths: where answers end.
        prefixes: what prompts share.
        clients: what is done after a refusal.
        tpot_seconds: TPOT objective.
        probe: whether lone requests are measured first.
        samples: file for the times of every try; None for none.
        seed: of every draw.
        quiet: whether no progress is shown.
    """

    address: Address
    source: str
    trace_format: str | None
    pace: Pace
    duration_seconds: float | None
    most_requests: int | None
    ceiling: CeilingRule | None
    lengths: "Lengths"
    prefixes: "Prefixes"
    clients: ClientModel
    tpot_seconds: float
    probe: bool
    samples: Path | None
    seed: int
    quiet: bool


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of it.

    Args:
        source: the traffic in words, for the table.
        is_gateway: what stood at the address.
        model: model that was asked for.
        chat: whether requests were chats.
        ceiling: where output ceilings came from.
        yardstick: objectives of goodput.
        tally: what was counted.
        doing: how well the generator did.
        raised: prompts made longer than the source had them, since none is so short.
        interrupted: whether it was ended from outside.
    """

    source: Traffic
    is_gateway: bool
    model: str
    chat: bool
    ceiling: CeilingRule
    yardstick: "Yardstick"
    tally: "Tally"
    doing: "Doing"
    raised: int
    interrupted: bool


def replayed(wishes: Wishes) -> Replayed:
    """Send it all and return what came of it.

    Raises:
        LlmshedError: the source, the target or a file cannot be used.
    """
    pace = wishes.pace
    limits_itself = pace.process is None and wishes.duration_seconds is not None
    part = Part(
        requests=wishes.most_requests,
        seconds=wishes.duration_seconds * pace.speed if limits_itself and wishes.duration_seconds else None,
        rate_per_second=pace.rate_per_second,
        retimed=pace.process is not None,
    )
    fold = wishes.clients is not ClientModel.NONE
    sys.setswitchinterval(SWITCH_SECONDS)
    with (
        opened_traffic(wishes.source, wishes.trace_format, part, wishes.seed, fold_retries=fold) as traffic,
        asyncio.Runner(loop_factory=_loop_factory()) as runner,
    ):
        return runner.run(_replay(wishes, traffic))


async def _replay(wishes: Wishes, traffic: Traffic) -> Replayed:
    from llmshed.clock import SystemClock
    from llmshed.loadtest.meter import Meter
    from llmshed.loadtest.open_loop import OpenLoop
    from llmshed.loadtest.plan import Planner
    from llmshed.loadtest.tally import Tally

    clock = SystemClock()
    cancel_in_order()
    known = traffic.summary.with_ceiling or traffic.format.tells_endings
    rule = wishes.ceiling or (CeilingRule.ASKED if known else CeilingRule.POW2)
    async with reached(wishes.address, clock, wishes.seed) as target:
        prompts = target.client.prompts
        planner = Planner(rule, wishes.lengths, wishes.prefixes, prompts.least_tokens, declares=target.is_gateway)
        yardstick = await _yardstick(wishes, traffic, target)
        tally, meter = Tally(yardstick), Meter(clock)
        with contextlib.ExitStack() as stack:
            rows = None if wishes.samples is None else stack.enter_context(SampleFile(wishes.samples))

            def ended(visit: "Visit") -> None:
                tally.add(visit)
                if rows is not None and loop.started_at is not None:
                    rows.write(visit, loop.started_at)

            rng = Random(f"{wishes.seed}/clients")  # noqa: S311 - jitter of clients, no secret
            loop = OpenLoop(target.client, meter, wishes.clients, rng, ended)
            interrupted = False
            with progress(loop, tally, quiet=wishes.quiet):
                try:
                    await loop.run(planner.planned(_paced(wishes, traffic)))
                except asyncio.CancelledError:
                    interrupted = True
        return Replayed(
            source=traffic,
            is_gateway=target.is_gateway,
            model=target.model,
            chat=target.chat,
            ceiling=rule,
            yardstick=yardstick,
            tally=tally,
            doing=meter.doing(),
            raised=planner.raised,
            interrupted=interrupted,
        )


def _paced(wishes: Wishes, traffic: Traffic) -> "Iterator[TracedRequest]":
    """Yield the requests at the instants at which they are to be sent."""
    pace, seconds = wishes.pace, wishes.duration_seconds
    requests = traffic.requests()
    found = pace_of(pace.process, pace.rate_per_second, traffic)
    if found is None:
        return requests if pace.speed == 1.0 else in_time(requests, pace.speed)
    rng = Random(f"{wishes.seed}/arrivals")  # noqa: S311 - gaps between requests, no secret
    arrivals = found.process.arrivals(found.rate_per_second, rng)
    within = arrivals if seconds is None else takewhile(lambda at: at < seconds, arrivals)
    return with_arrivals(requests, within)


async def _yardstick(wishes: Wishes, traffic: Traffic, target: Reached) -> "Yardstick":
    from llmshed.loadtest.yardstick import Yardstick, probed

    if not wishes.probe:
        return Yardstick(wishes.tpot_seconds)
    quantiles = traffic.summary.input_tokens.quantiles
    least = target.client.prompts.least_tokens
    sizes = [max(least, round(quantiles[share])) for share in PROBE_SHARES]
    return await probed(target.client, wishes.tpot_seconds, sizes)


def _loop_factory() -> "Callable[[], asyncio.AbstractEventLoop] | None":
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
