"""Drives a machine against a replica, for `llmshed calibrate` and `llmshed profile verify`."""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from llmshed.loadtest.driver import run
from llmshed.loadtest.meter import Meter
from llmshed.loadtest.sender import ReplicaSender
from llmshed.loadtest.watchful import DisturbedError, WatchfulSender

from ._signals import cancel_in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from llmshed.calibration.events import Stop
    from llmshed.clock import Clock
    from llmshed.engines.base import Activity
    from llmshed.loadtest.driver import Machine
    from llmshed.loadtest.meter import Doing

    from ._calibrate_target import Replica

T = TypeVar("T")
LATE_RATIO = 0.05
"""Lateness of the sends, as a part of the tightest TTFT bound, that is told. Requests of a level go out many at once,
and lateness counts as TTFT: below this it moves a knee by less than levels are apart."""


@dataclass(frozen=True, slots=True)
class Driven:
    """How a run ended.

    Args:
        stop: why; None when it was interrupted or disturbed.
        disturbed: what showed that others use the replica; None for nothing.
        doing: how well the generator did.
    """

    stop: "Stop | None"
    disturbed: DisturbedError | None
    doing: "Doing"


async def drive(
    replica: "Replica",
    clock: "Clock",
    opened: "Callable[[WatchfulSender], contextlib.AbstractContextManager[Machine]]",
    *,
    ttft_seconds: float,
    force: bool,
) -> Driven:
    """Run a machine until it stops, is interrupted, or others are seen to use the replica.

    Args:
        replica: where to send.
        clock: where instants come from.
        opened: opens what the machine needs, for the sender that it is driven with.
        ttft_seconds: the tightest bound of a first token.
        force: whether others may use the replica.
    """
    meter = Meter(clock, LATE_RATIO * ttft_seconds)
    sender = ReplicaSender(replica.client, meter)
    before = None if force else await _activity(replica)
    watchful = WatchfulSender(sender, replica.client, replica.info.max_batch_total_tokens, before)
    stop, disturbed = None, None
    watching = asyncio.get_running_loop().create_task(meter.watch())
    try:
        with opened(watchful) as machine:
            stop = await run(machine, watchful, clock)
    except DisturbedError as error:
        disturbed = error
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        await sender.close()
    return Driven(stop, disturbed, meter.doing())


def in_loop(main: "Coroutine[Any, Any, T]") -> T:
    """Run a coroutine to its end; SIGTERM and SIGHUP cancel it as Ctrl-C does."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_ending(main))


async def _ending(main: "Coroutine[Any, Any, T]") -> T:
    cancel_in_order()
    return await main


async def _activity(replica: "Replica") -> "Activity":
    from llmshed.loadtest.client import METRICS

    return replica.client.engine.read_activity(await replica.client.page(METRICS))


def _loop_factory() -> "Callable[[], asyncio.AbstractEventLoop] | None":
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
