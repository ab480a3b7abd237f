"""Runs `llmshed calibrate`: looks at the replica, drives the machine, and keeps what came of it."""

from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from llmshed.calibration import Calibration
from llmshed.calibration.events import Stop, StopReason
from llmshed.clock import SystemClock
from llmshed.errors import EngineError
from llmshed.loadtest.journal import Journal, JournalError, read_journal
from llmshed.loadtest.kept import KeptMachine
from llmshed.loadtest.resuming import ShiftedClock, Standing, brought_back
from llmshed.profile.sections import Lanes

from ._calibrate_drive import drive, in_loop
from ._calibrate_progress import progress
from ._calibrate_samples import SampleFile
from ._calibrate_target import Replica, looked_at
from ._calibrate_wishes import Traffic, Wishes, plan_as_object, plan_of
from ._input import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llmshed.calibration.plan import Plan
    from llmshed.clock import Clock
    from llmshed.loadtest.driver import Machine
    from llmshed.loadtest.meter import Doing
    from llmshed.loadtest.watchful import DisturbedError, WatchfulSender

FAILED = (StopReason.REFUSES, StopReason.FAILS, StopReason.SILENT)
"""Ends after which nothing that was measured is a replica's."""
TOLD = ("engine", "model_id", "engine_version")
"""What of a replica has to be the same for a run to be gone on with."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that begins or goes on.

    Args:
        header: the journal's first line.
        plan: what is to be found.
        lanes: thresholds and objectives that the mix is held to.
        standing: where it stands.
    """

    header: dict[str, Any]
    plan: "Plan"
    lanes: Lanes
    standing: Standing[Calibration]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What came of it.

    Args:
        replica: what was looked at; its connections are closed.
        run: what was to be found, and the machine that looked for it.
        stop: why it ended; None when it was interrupted, or nothing was sent.
        disturbed: what showed that others use the replica; None for nothing.
        doing: how well the generator did; None when nothing was sent.
    """

    replica: Replica
    run: Run
    stop: "Stop | None" = None
    disturbed: "DisturbedError | None" = None
    doing: "Doing | None" = None

    @property
    def ended(self) -> str:
        """Return why it ended, in a few words."""
        if self.disturbed is not None:
            return "somebody else used the replica"
        return "it was interrupted" if self.stop is None else self.stop.detail


def calibrated(wishes: Wishes) -> Calibrated:
    """Calibrate, and return what came of it.

    Raises:
        LlmshedError: the replica, the journal or a file cannot be used.
    """
    return in_loop(_calibrate(wishes))


async def _calibrate(wishes: Wishes) -> Calibrated:
    if wishes.traffic is not None:
        system = SystemClock()
        async with looked_at(wishes.place, system) as replica:
            return await _sent(wishes, _fresh(wishes, wishes.traffic, replica), replica, system)
    run = _resumed(wishes)
    clock = ShiftedClock(run.standing.ended_at)
    # The same texts again would be found in the engine's cache.
    place = replace(wishes.place, seed=wishes.place.seed + run.standing.keep_bytes)
    async with looked_at(place, clock) as replica:
        _check_same(run, replica, wishes)
        return await _sent(wishes, run, replica, clock)


async def _sent(wishes: Wishes, run: Run, replica: Replica, clock: "Clock") -> Calibrated:
    if wishes.dry_run:
        return Calibrated(replica, run)
    found = run.standing.machine.result()
    if found.stop is not None:  # it had come to its end, so that only its files are to be written
        return Calibrated(replica, run, Stop(found.stop, found.detail))
    return await _drive(wishes, run, replica, clock)


def _fresh(wishes: Wishes, traffic: Traffic, replica: Replica) -> Run:
    plan = traffic.plan(replica.info)
    header = {
        **_told(replica),
        "seed": wishes.place.seed,
        "mix": traffic.words,
        "plan": plan_as_object(plan),
        "lanes": traffic.lanes.model_dump(mode="json"),
    }
    return Run(header, plan, traffic.lanes, Standing(_machine(plan, wishes.place.seed)))


def _resumed(wishes: Wishes) -> Run:
    path = wishes.outputs.journal
    try:
        header, entries = read_journal(read_bytes(str(path)))
        plan, lanes = plan_of(header["plan"]), Lanes.model_validate_json(_json(header["lanes"]))
        seed = int(header["seed"])
        standing = brought_back(lambda: _machine(plan, seed), entries, _finished)
    except JournalError as error:
        raise JournalError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(f"{path}: it does not say what was asked for: {error}") from None
    return Run(header, plan, lanes, standing)


def _check_same(run: Run, replica: Replica, wishes: Wishes) -> None:
    """See that the replica is still what the run began with."""
    for name, value in _told(replica).items():
        if value != run.header.get(name):
            raise EngineError(
                f"{wishes.place.url} is not what {wishes.outputs.journal} was begun with: its {name} is {value}, and"
                f" was {run.header.get(name)}"
            )


def _told(replica: Replica) -> dict[str, str]:
    told = (replica.client.engine.name, replica.info.model_id, replica.info.version)
    return dict(zip(TOLD, told, strict=True))


def _machine(plan: "Plan", seed: int) -> Calibration:
    return Calibration(plan, Random(f"{seed}/calibration"))  # noqa: S311 - the order of sizes is no secret


def _finished(machine: Calibration) -> bool:
    """Say whether a run that ended would end so again; one whose replica failed may do better with a sound one."""
    return machine.result().stop not in FAILED


async def _drive(wishes: Wishes, run: Run, replica: Replica, clock: "Clock") -> Calibrated:
    tightest = run.plan.tightest_ttft_seconds
    driven = await drive(
        replica,
        clock,
        lambda sender: _kept(wishes, run, sender),
        ttft_seconds=tightest,
        force=wishes.place.force,
    )
    return Calibrated(replica, run, driven.stop, driven.disturbed, driven.doing)


@contextmanager
def _kept(wishes: Wishes, run: Run, sender: "WatchfulSender") -> "Iterator[Machine]":
    """Open the files of a run, and let its machine write them."""
    goes_on = run.standing.began_at is not None
    with (
        Journal(wishes.outputs.journal, None if goes_on else run.header, run.standing.keep_bytes) as journal,
        SampleFile(wishes.outputs.samples) as rows,
        progress(run.standing.machine, quiet=wishes.quiet),
    ):
        yield KeptMachine(run.standing, sender, journal, rows.write)


def _json(value: object) -> bytes:
    import orjson

    return orjson.dumps(value)
