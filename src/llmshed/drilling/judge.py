"""What an answer is worth, by the checks of its case."""

import asyncio
import importlib.util
import math
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import orjson

from llmshed.drilling.cases import Case, Check
from llmshed.drilling.judging import judged
from llmshed.errors import ExitCode, LlmshedError

CHECK_SECONDS: Final = 2.0
"""Longest that a pattern or schema may take; ones that are meant take microseconds."""
START_SECONDS: Final = 60.0
"""Longest that the process of checks may take to begin, on a machine that does other work, too."""
SCORER_SECONDS: Final = 60.0
"""Longest that a scorer may take: it may ask another model."""
_MOST_LINE_BYTES: Final = 16 << 20
_MOST_SCORER_BYTES: Final = 4096


_Pipe = TypeVar("_Pipe", asyncio.StreamReader, asyncio.StreamWriter)


class UncheckableError(LlmshedError):
    """A set needs what is not there, or was not permitted."""

    exit_code = ExitCode.USAGE


def require_means(cases: Iterable[Case], *, allow_commands: bool) -> None:
    """See that all checks can be made before anything is sent.

    Raises:
        UncheckableError: scorers were not permitted, or schemas are to be checked without the library.
    """
    checks = [check for case in cases for check in case.checks]
    if any(check.scorer is not None for check in checks) and not allow_commands:
        raise UncheckableError("the set runs programs (`scorer`): look at them, then add --allow-commands")
    if any(check.json_schema is not None for check in checks) and importlib.util.find_spec("jsonschema") is None:
        raise UncheckableError("JSON schemas are checked by a library: pip install 'llmshed[drill]'")


class Judge:
    """Judges answers, one check at a time but for scorers; an asynchronous context manager."""

    def __init__(self, check_seconds: float = CHECK_SECONDS, scorer_seconds: float = SCORER_SECONDS) -> None:
        """Start nothing before the first check needs it."""
        self._check_seconds = check_seconds
        self._scorer_seconds = scorer_seconds
        self._child: Process | None = None
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Begin."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process of checks."""
        await self._end_child()

    async def result(self, case: Case, answer: str) -> tuple[float, str | None]:
        """Return the least of what the checks find, and what went wrong with one: that check found 0."""
        least = 1.0
        for check in case.checks:
            found = await (self._scored(case, check, answer) if check.scorer else self._checked(check, answer))
            if isinstance(found, str):
                return 0.0, found
            least = min(least, found)
        return least, None

    async def _checked(self, check: Check, answer: str) -> float | str:
        terms = check.model_dump(exclude_none=True)
        if check.exact is not None:
            return judged(terms, answer)  # nothing in it can take long
        question = {"check": terms, "answer": answer}
        async with self._turn:
            child = self._child or await self._started()
            asking, answering = _pipe(child.stdin), _pipe(child.stdout)
            try:
                async with asyncio.timeout(self._check_seconds):
                    asking.write(orjson.dumps(question) + b"\n")
                    await asking.drain()
                    line = await answering.readline()
            except TimeoutError:
                await self._end_child()
                return f"a check took longer than {self._check_seconds:g} s"
            except ConnectionError:
                line = b""
            except asyncio.CancelledError:
                await self._end_child()
                raise
            if not line:
                await self._end_child()
                return "a check ended the process that makes it"
        told: dict[str, Any] = orjson.loads(line)
        return str(told["error"]) if "error" in told else float(told["result"])

    async def _started(self) -> Process:
        # -P: nothing is imported from the working directory.
        arguments = (sys.executable, "-P", "-m", "llmshed.drilling.judging")
        child = await asyncio.create_subprocess_exec(
            *arguments, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=_MOST_LINE_BYTES
        )
        self._child = child  # so that it is ended whatever happens
        async with asyncio.timeout(START_SECONDS):
            await _pipe(child.stdout).readline()
        return child

    async def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None and child.returncode is None:
            child.kill()
            await child.wait()

    async def _scored(self, case: Case, check: Check, answer: str) -> float | str:
        """Run a scorer: JSON with the case's id, messages and answer goes in, a number comes out."""
        told = orjson.dumps({"id": case.id, "messages": case.messages, "answer": answer})
        program, *arguments = check.scorer or ("",)
        try:
            child = await asyncio.create_subprocess_exec(
                program, *arguments, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
            )
        except OSError as error:
            return f"scorer {program}: cannot be run: {error.strerror}"
        try:
            async with asyncio.timeout(self._scorer_seconds):
                printed, _ = await child.communicate(told)
        except TimeoutError:
            return f"scorer {program}: took longer than {self._scorer_seconds:g} s"
        finally:
            if child.returncode is None:
                os.killpg(child.pid, signal.SIGKILL)  # what it started goes, too
                await child.wait()
        if child.returncode != 0:
            return f"scorer {program}: ended with {child.returncode}"
        try:
            found = float(printed[:_MOST_SCORER_BYTES])
        except ValueError:
            found = math.nan
        return found if 0 <= found <= 1 else f"scorer {program}: printed something other than a number from 0 to 1"


def _pipe(pipe: _Pipe | None) -> _Pipe:
    if pipe is None:
        raise RuntimeError("the process of checks was started without pipes")
    return pipe
