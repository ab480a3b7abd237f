"""Which fallbacks of a running gateway are stale: its files of evaluations against what its replicas are now."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from llmshed.admission.policy import PoolPolicy
from llmshed.ladder.model import Ladder
from llmshed.ladder.paths import changing
from llmshed.ladder.records import MOST_BYTES, NO_DRILLS, DrillFile
from llmshed.ladder.staleness import Stale, Why, stale_rungs
from llmshed.profile.comparison import Facts

LOOK_SECONDS: Final = 5.0
"""Time between two looks: what a replica tells of itself is asked once a minute, or when it comes back."""

_log = logging.getLogger(__name__)

_Stamp = tuple[int, int, int]
"""By which a file that was written anew is known: device's file number, time of change in ns, size."""


class Evaluations:
    """What is wrong with the evaluations of each pool's ladder, as of the last look."""

    def __init__(self, facts_of: Callable[[str], Facts]) -> None:
        """Know nothing yet; `facts_of` tells what the replicas of a pool are, as far as that is known."""
        self._facts_of = facts_of
        self._read: dict[str, tuple[_Stamp | None, DrillFile | str]] = {}
        self._stale: dict[str, tuple[Stale, ...]] = {}

    def stale(self, pool: str) -> tuple[Stale, ...]:
        """Return what is wrong with a pool's evaluations, in the order of its rungs; of no ladder it is nothing."""
        return self._stale.get(pool, ())

    async def look(self, pools: Sequence[PoolPolicy]) -> None:
        """Look at the files and the replicas; what is wrong anew, or right again, is logged once."""
        found: dict[str, tuple[Stale, ...]] = {}
        for pool in pools:
            if pool.ladder is not None and changing(pool.ladder):
                found[pool.name] = await self._judged(pool.name, pool.ladder)
        before, self._stale = self._stale, found
        named = {pool.ladder.evaluations for pool in pools if pool.ladder is not None}
        self._read = {path: read for path, read in self._read.items() if path in named}
        for name in sorted({*before, *found}):
            _tell(name, before.get(name, ()), found.get(name, ()))

    async def _judged(self, pool: str, ladder: Ladder) -> tuple[Stale, ...]:
        drills = await self._drills(ladder.evaluations)
        if isinstance(drills, str):
            return tuple(Stale(rung.name, Why.UNREADABLE, drills) for rung in changing(ladder))
        return stale_rungs(ladder, pool, drills.drills, self._facts_of)

    async def _drills(self, path: str | None) -> DrillFile | str:
        """Return the drills of a file, none where there is no file, or what is wrong with it."""
        if path is None:
            return NO_DRILLS
        known = self._read.get(path)
        self._read[path] = read = await asyncio.to_thread(_read_anew, Path(path), known)
        return read[1]


async def watch_evaluations(evaluations: Evaluations, pools: Callable[[], Sequence[PoolPolicy]]) -> None:
    """Look again and again, until cancelled."""
    while True:
        await evaluations.look(pools())
        await asyncio.sleep(LOOK_SECONDS)


def _read_anew(
    path: Path, known: tuple[_Stamp | None, DrillFile | str] | None
) -> tuple[_Stamp | None, DrillFile | str]:
    """Read a file unless it is the one that was read."""
    stamp: _Stamp | None = None
    try:
        status = path.stat()
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        if known is not None and known[0] == stamp:
            return known
        if status.st_size > MOST_BYTES:
            return stamp, f"{path}: larger than {MOST_BYTES >> 20} MiB, so it holds something other than evaluations"
        return stamp, DrillFile.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None, NO_DRILLS
    except OSError as error:
        return None, f"{path}: cannot be read: {error.strerror}"
    except ValidationError:
        return stamp, f"{path}: is no file of evaluations"


def _tell(pool: str, before: tuple[Stale, ...], now: tuple[Stale, ...]) -> None:
    known, seen = ({(one.rung, one.why) for one in side} for side in (before, now))
    for one in now:
        if (one.rung, one.why) not in known:
            facts = {"pool": pool, "rung": one.rung, "why": one.why, "detail": one.detail}
            _log.warning("ladder_evaluation_stale", extra=facts)
    for rung, why in sorted(known - seen):
        _log.info("ladder_evaluation_holds_again", extra={"pool": pool, "rung": rung, "why": why})
