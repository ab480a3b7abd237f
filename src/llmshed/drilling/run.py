"""Sends every case through every path: a case's paths one after another, several cases at a time."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import aiohttp

from llmshed.clock import Clock
from llmshed.drilling.answer import Answer, asked
from llmshed.drilling.cases import Case
from llmshed.drilling.judge import Judge
from llmshed.drilling.terms import Path, Terms
from llmshed.errors import EngineError, ExitCode, LlmshedError

TRIES: Final = 4
"""Of one request that the gateway was too busy for."""
_WAIT_SECONDS: Final = 1.0
"""Before another try where no wait was told."""


class TurnedAwayError(LlmshedError):
    """The gateway takes neither the key nor the pass."""

    exit_code = ExitCode.NO_PERMISSION


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case on one path.

    Args:
        case: the case.
        path: the path.
        answer: what came.
        result: what it is worth, 0 to 1; None where the path was not tried, whose gateway was busy or gone.
        error: what went wrong, with the request or with a check.
    """

    case: Case
    path: Path
    answer: Answer
    result: float | None
    error: str | None

    @property
    def changed(self) -> bool:
        """Say whether the answer tells of any change."""
        return bool(self.answer.degraded)


@dataclass(frozen=True, slots=True)
class Manner:
    """How cases are sent.

    Args:
        url: address of the data listener.
        key: key of a tenant; None to send none.
        concurrency: cases at a time.
        timeout_seconds: longest that an answer may take, and longest wait before another try.
    """

    url: str
    key: str | None
    concurrency: int
    timeout_seconds: float


async def drilled(
    cases: Sequence[Case], terms: Terms, manner: Manner, judge: Judge, clock: Clock, on_outcome: Callable[[], None]
) -> list[Outcome]:
    """Send all and return what came of it, in the order of the cases and then of the paths.

    Args:
        cases: the set.
        terms: the paths, and the pass by which they are chosen.
        manner: how to send.
        judge: says what an answer is worth.
        clock: where times come from.
        on_outcome: is called as each one is known.

    Raises:
        EngineError: nobody answers any more.
        TurnedAwayError: the gateway does not take the key or the pass.
    """
    seats = asyncio.Semaphore(manner.concurrency)
    timeout = aiohttp.ClientTimeout(total=manner.timeout_seconds)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session:
        drill = _Drill(session, terms, manner, judge, clock)

        async def one(number: int, case: Case) -> list[Outcome]:
            # Each path is first in turn: what one sent before is cached for the next, which then begins sooner.
            turn = number % len(terms.paths)
            found = {}
            async with seats:
                for path in (*terms.paths[turn:], *terms.paths[:turn]):
                    found[path.rung] = await drill.outcome(case, path)
                    on_outcome()
            return [found[path.rung] for path in terms.paths]

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(number, case)) for number, case in enumerate(cases)]
        except* LlmshedError as errors:
            raise _first(errors) from None
    return [outcome for task in tasks for outcome in task.result()]


@dataclass(frozen=True, slots=True)
class _Drill:
    """What all requests of a drill share."""

    session: aiohttp.ClientSession
    terms: Terms
    manner: Manner
    judge: Judge
    clock: Clock

    async def outcome(self, case: Case, path: Path) -> Outcome:
        """Send a case through a path and judge its answer."""
        answer = await self._answered(case, path)
        wrong = answer.reason if answer.was_not_tried else _not_as_asked(answer, path, self.terms)
        if wrong is not None:
            return Outcome(case, path, answer, None, wrong)
        if answer.status != 200:
            return Outcome(case, path, answer, 0.0, answer.reason)
        result, error = await self.judge.result(case, answer.text)
        return Outcome(case, path, answer, result, error)

    async def _answered(self, case: Case, path: Path) -> Answer:
        answer = await self._asked(case, path)
        for _ in range(TRIES - 1):
            if not answer.was_not_tried:
                break
            wait = answer.retry_after_seconds
            await asyncio.sleep(min(_WAIT_SECONDS if wait is None else wait, self.manner.timeout_seconds))
            answer = await self._asked(case, path)
        if answer.is_lost:
            raise EngineError(f"nobody answers at {self.manner.url}: {answer.reason}")
        return answer

    async def _asked(self, case: Case, path: Path) -> Answer:
        headers = self.terms.headers(path)
        if self.manner.key is not None:
            headers["authorization"] = f"Bearer {self.manner.key}"
        answer = await asked(self.session, self.manner.url, case.body(self.terms.model), headers, self.clock.now)
        if answer.status in {401, 403, 404}:
            raise TurnedAwayError(f"{self.manner.url} answered {answer.status}: {answer.reason}")
        return answer


def _not_as_asked(answer: Answer, path: Path, terms: Terms) -> str | None:
    """Return why an answer is not that of its path: the figures would be another one's."""
    others = sorted(set(answer.degraded) - set(path.actions))
    if others:
        return f"the gateway did {', '.join(others)} beside what was asked for: the pool is degraded now"
    if answer.status == 200 and answer.model not in {None, terms.models[path.pool]}:
        return f"{answer.model} answered, and not {terms.models[path.pool]}"
    return None


def _first(errors: ExceptionGroup[LlmshedError]) -> LlmshedError:
    """Return one of the errors by which cases ended; all others were ended with it."""
    error = errors.exceptions[0]
    return error if isinstance(error, LlmshedError) else _first(error)
