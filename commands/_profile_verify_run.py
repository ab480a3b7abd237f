"""Runs `llmshed profile verify`: the driver and the target checks of a calibration, with a shorter course."""

import datetime as dt
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from llmshed.calibration.behaving import Moved, moved
from llmshed.calibration.verification import Verification
from llmshed.clock import SystemClock
from llmshed.loadtest.watchful import UndisturbedMachine
from llmshed.profile.comparison import Compared, Match, compare, measured_facts

from ._calibrate_drive import Driven, drive, in_loop
from ._calibrate_fingerprint import fingerprint
from ._calibrate_progress import progress
from ._calibrate_target import Place, Replica, looked_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llmshed.calibration.plan import Plan
    from llmshed.config.declared import DeclaredFacts
    from llmshed.loadtest.driver import Machine
    from llmshed.loadtest.watchful import WatchfulSender
    from llmshed.profile import Profile

    from ._calibrate_wishes import Traffic


@dataclass(frozen=True, slots=True)
class Asked:
    """Everything that was asked for.

    Args:
        place: the replica.
        file: the profile's file.
        profile: what it holds.
        traffic: what is sent.
        declared: facts of the replica that its engine does not tell.
        quiet: whether no progress is shown.
    """

    place: Place
    file: str
    profile: "Profile"
    traffic: "Traffic"
    declared: "DeclaredFacts"
    quiet: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of it.

    Args:
        replica: what was looked at; its connections are closed.
        plan: what was sent, under which objectives.
        machine: what it has seen of both levels.
        driven: how it ended.
        compared: fields of the fingerprint.
        moved: paces of the idle replica.
    """

    replica: Replica
    plan: "Plan"
    machine: Verification
    driven: Driven
    compared: tuple[Compared, ...]
    moved: tuple[Moved, ...]

    @property
    def mismatches(self) -> "tuple[Compared | Moved, ...]":
        """Return what shows that the replica is not the one that was measured."""
        everything: tuple[Compared | Moved, ...] = (*self.compared, *self.moved)
        return tuple(one for one in everything if one.match is Match.MISMATCH)


def verified(asked: Asked) -> Seen:
    """Hold the levels, and return what came of it.

    Raises:
        LlmshedError: the replica, the mix or the tokenizer cannot be used.
    """
    return in_loop(_verify(asked))


async def _verify(asked: Asked) -> Seen:
    clock, profile = SystemClock(), asked.profile
    async with looked_at(asked.place, clock) as replica:
        plan = asked.traffic.plan(replica.info)
        budget = profile.budget
        rng = Random(f"{asked.place.seed}/verification")  # noqa: S311 - the order of sizes is no secret
        machine = Verification(plan, rng, budget.gross_ceiling_tokens, budget.gross_ceiling_high_tokens)
        driven = await drive(
            replica,
            clock,
            lambda sender: _watched(machine, sender, asked),
            ttft_seconds=plan.tightest_ttft_seconds,
            force=asked.place.force,
        )
    behaviour = profile.fingerprint.behaviour
    now = fingerprint(replica, asked.declared, asked.traffic.words, dt.datetime.now(tz=dt.UTC).date(), behaviour)
    return Seen(
        replica,
        plan,
        machine,
        driven,
        compare(measured_facts(profile.fingerprint), measured_facts(now), {}),
        moved(behaviour, machine.result().idle),
    )


@contextmanager
def _watched(machine: Verification, sender: "WatchfulSender", asked: Asked) -> "Iterator[Machine]":
    with progress(machine, quiet=asked.quiet):
        yield UndisturbedMachine(machine, sender)
