"""What people do with ladders, and what ladders do: written down first, then done, and remembered.

A hold is put down in the audit and in the state file before the core hears of it, so that nothing that was answered is
lost with the process, and nothing is done that could not be written. Steps by rule wait for nobody: the core has made
them when they are heard, and a file that cannot be written is told as a trouble.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final

from llmshed.admission.events import RungHeld, RungReleased
from llmshed.clock import Clock
from llmshed.config.ladders import LadderSettings
from llmshed.errors import ExitCode, LadderError, LlmshedError
from llmshed.gateway.driver import Driver
from llmshed.gateway.ladders.audit import AuditEntry, append_lines, last_records
from llmshed.gateway.ladders.held import HeldRung, read_held, write_held
from llmshed.gateway.tasks import Tasks
from llmshed.ladder.model import Ladder
from llmshed.ladder.standing import Cause, Hold, Standing, Step

MOST_REMEMBERED: Final = 1000
"""Entries that are told of the history; the file has all."""

_log = logging.getLogger(__name__)


class UnwrittenError(LlmshedError):
    """An act was not done, since it could not be written down, or the ladder changed meanwhile."""

    exit_code = ExitCode.TEMPORARY


class LadderBook:
    """The acts on one gateway's ladders, one at a time.

    Args:
        driver: the only caller of the core.
        clock: monotonic for the core, wall for the files.
        settings: where the files are.
        version: returns the version of the configuration in force.
    """

    def __init__(self, driver: Driver, clock: Clock, settings: LadderSettings, version: Callable[[], str]) -> None:
        self.settings = settings
        self._driver = driver
        self._clock = clock
        self._version = version
        self._state_path = None if settings.state_file is None else Path(settings.state_file)
        self._audit_path = None if settings.audit_file is None else Path(settings.audit_file)
        self._held: dict[str, HeldRung] = {}
        self._history: deque[dict[str, Any]] = deque(maxlen=MOST_REMEMBERED)
        self._pending: list[dict[str, Any]] = []
        self._troubles: dict[str, str] = {}
        self._one_at_a_time = asyncio.Lock()
        self._tasks = Tasks()

    @property
    def trouble(self) -> str | None:
        """Return why the files are not what they should be; None while they are."""
        return "; ".join(self._troubles.values()) or None

    def last(self, number: int) -> list[dict[str, Any]]:
        """Return the last entries, newest first."""
        return list(self._history)[: -number - 1 : -1]

    def ladder(self, pool: str) -> Ladder | None:
        """Return the ladder in force on a pool; None where it has none."""
        return next((one.ladder for one in self._driver.policy.pools if one.name == pool), None)

    def standing(self, pool: str) -> Standing | None:
        """Return where a pool stands; None where it has no ladder."""
        return next((one.ladder for one in self._driver.state().pools if one.name == pool), None)

    def restore(self) -> None:
        """Hold again what was held when the last process ended, before anybody is served; blocks.

        What cannot be read is told and left as it is: a gateway without its holds serves by rule, and one that does not
        start serves nobody.
        """
        try:
            if self._audit_path is not None:
                self._history.extend(last_records(self._audit_path, MOST_REMEMBERED))
        except OSError as error:
            self._fail("audit", f"ladder.audit_file: {self._audit_path}: cannot be read: {_cause(error)}")
        try:
            found = {} if self._state_path is None else read_held(self._state_path)
        except LadderError as error:
            self._fail("state", str(error))
            return
        wall = self._clock.wall()
        for pool, held in found.items():
            seconds = held.remaining_seconds(wall)
            ladder = self.ladder(pool)
            if seconds <= 0 or ladder is None or ladder.rung_number(held.rung) is None:
                _log.warning("hold_not_restored", extra={"pool": pool, "rung": held.rung, "remaining": seconds})
                continue
            self._held[pool] = held
            self._driver.tell(RungHeld(pool, Hold(held.rung, self._clock.now() + seconds, held.reason)))
            self._note(
                self._entry("restored", pool, rung=held.rung, reason=held.reason, for_seconds=seconds, who=held.who)
            )

    def heard(self, step: Step) -> None:
        """Take note of a step, which the core has made; its line is written soon."""
        standing = step.standing
        rung = standing.in_force[-1].name if standing.in_force else None
        numbers = {"before": step.before, "after": step.after, "by_rule": standing.by_rule, "cause": step.cause.value}
        _log.warning("ladder_step", extra={"pool": step.pool, "ladder": standing.ladder, "rung": rung, **numbers})
        self._note(self._entry("step", step.pool, label=standing.ladder, rung=rung, **numbers))
        if step.cause in {Cause.EXPIRED, Cause.RELOADED} and step.pool in self._held:
            self._tasks.spawn(self._forget_ended(), "forget-ended-holds")

    async def hold(self, pool: str, rung: str, for_seconds: float, reason: str, who: str) -> None:
        """Hold a rung of a pool's ladder, which has it, in place of what was held.

        Raises:
            UnwrittenError: it could not be written down, or the ladder changed meanwhile; nothing is held that was not.
        """
        await self._whole(self._hold(pool, rung, for_seconds, reason, who))

    async def release(self, pool: str, reason: str | None, who: str) -> None:
        """Give up what is held on a pool.

        Raises:
            UnwrittenError: it could not be written down; it is still held.
        """
        await self._whole(self._release(pool, reason, who))

    def reloaded(self, who: str, *, in_force: bool) -> None:
        """Take note that a configuration was put in force, or refused; what is in its files is not told."""
        what = "reload" if in_force else "reload_refused"
        self._note(AuditEntry(self._clock.wall(), what, None, None, self._version(), who=who))

    async def close(self) -> None:
        """End the acts that are under way, and write what is not written yet."""
        await self._tasks.finish()
        async with self._one_at_a_time:
            await self._flush()

    async def _hold(self, pool: str, rung: str, for_seconds: float, reason: str, who: str) -> None:
        async with self._one_at_a_time:
            entry = self._entry("trigger", pool, rung=rung, reason=reason, for_seconds=for_seconds, who=who)
            held = HeldRung(
                pool=pool,
                rung=rung,
                until=self._clock.wall() + for_seconds,
                for_seconds=for_seconds,
                reason=reason,
                who=who,
            )
            await self._write_down(entry, self._still_held() | {pool: held})
            try:
                self._driver.tell(RungHeld(pool, Hold(rung, self._clock.now() + for_seconds, reason)))
            except (KeyError, ValueError):
                await self._take_back(entry)
                raise UnwrittenError(f"the ladder of pool {pool} was changed meanwhile; ask again") from None
            self._held[pool] = held
            self._spawn_flush()

    async def _release(self, pool: str, reason: str | None, who: str) -> None:
        async with self._one_at_a_time:
            held = self._still_held()
            known = held.pop(pool, None)
            entry = self._entry("release", pool, rung=None if known is None else known.rung, reason=reason, who=who)
            await self._write_down(entry, held)
            self._held = held
            self._driver.tell(RungReleased(pool))
            self._spawn_flush()

    async def _write_down(self, entry: AuditEntry, held: Mapping[str, HeldRung]) -> None:
        """Append an entry and put the state in place, or leave both as they were but for an entry that says so."""
        await self._flush()
        if self._audit_path is not None:
            try:
                await asyncio.to_thread(append_lines, self._audit_path, [entry.record()], on_disk=True)
            except OSError as error:
                raise self._unwritten("audit", self._audit_path, error) from None
            self._troubles.pop("audit", None)
        self._history.append(entry.record())
        if self._state_path is not None:
            try:
                await asyncio.to_thread(write_held, self._state_path, held)
            except OSError as error:
                await self._take_back(entry)  # it may be in place, where the next process would find it
                raise self._unwritten("state", self._state_path, error) from None
            self._troubles.pop("state", None)

    async def _take_back(self, entry: AuditEntry) -> None:
        """Undo what was written down for an act that could not be done."""
        self._note(self._failed(entry))
        await self._write_state()

    async def _forget_ended(self) -> None:
        async with self._one_at_a_time:
            self._held = self._still_held()
            await self._write_state()

    async def _write_state(self) -> None:
        if self._state_path is None:
            return
        try:
            await asyncio.to_thread(write_held, self._state_path, self._still_held())
            self._troubles.pop("state", None)
        except OSError as error:
            self._fail("state", _sentence("state", self._state_path, error))

    def _still_held(self) -> dict[str, HeldRung]:
        """Return what was told to the core and is held by it still."""
        holding = {
            one.name for one in self._driver.state().pools if one.ladder is not None and one.ladder.hold is not None
        }
        return {pool: held for pool, held in self._held.items() if pool in holding}

    async def _whole(self, act: Coroutine[object, object, None]) -> None:
        """Run an act to its end even if who asked for it is gone meanwhile."""
        outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                await act
            except LlmshedError as error:
                if not outcome.done():
                    outcome.set_exception(error)
            except BaseException:
                outcome.cancel()
                raise
            else:
                if not outcome.done():
                    outcome.set_result(None)

        self._tasks.spawn(run(), "ladder-act")
        await outcome

    def _note(self, entry: AuditEntry) -> None:
        """Remember an entry, and write it soon."""
        record = entry.record()
        self._history.append(record)
        if self._audit_path is not None:
            self._pending.append(record)
            self._spawn_flush()

    def _spawn_flush(self) -> None:
        async def run() -> None:
            async with self._one_at_a_time:
                await self._flush()

        if self._pending:
            self._tasks.spawn(run(), "write-ladder-steps")

    async def _flush(self) -> None:
        """Append what waits; what cannot be written waits for the next time, the newest of it."""
        if not self._pending or self._audit_path is None:
            return
        waiting, self._pending = self._pending, []
        try:
            await asyncio.to_thread(append_lines, self._audit_path, waiting, on_disk=False)
            self._troubles.pop("audit", None)
        except OSError as error:
            self._pending = (waiting + self._pending)[-MOST_REMEMBERED:]
            self._fail("audit", _sentence("audit", self._audit_path, error))

    def _entry(self, what: str, pool: str, label: str | None = None, **other: Any) -> AuditEntry:
        ladder = self.ladder(pool)
        known = label or ("" if ladder is None else ladder.label)
        return AuditEntry(self._clock.wall(), what, pool, known, self._version(), **other)

    def _failed(self, entry: AuditEntry) -> AuditEntry:
        return self._entry("failed", entry.pool or "", rung=entry.rung, reason=entry.what, who=entry.who)

    def _unwritten(self, which: str, path: Path, error: OSError) -> UnwrittenError:
        sentence = _sentence(which, path, error)
        self._fail(which, sentence)
        return UnwrittenError(f"{sentence}; nothing was changed")

    def _fail(self, which: str, sentence: str) -> None:
        if self._troubles.get(which) != sentence:
            _log.error("ladder_file_trouble", extra={"cause": sentence})
        self._troubles[which] = sentence


def _sentence(which: str, path: Path, error: OSError) -> str:
    return f"ladder.{which}_file: {path}: cannot be written: {_cause(error)}"


def _cause(error: OSError) -> str:
    return error.strerror or str(error)
