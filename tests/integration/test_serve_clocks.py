"""A wall clock that is moved by an hour, forth and back, changes no wait, no deadline and no Retry-After."""

import asyncio
import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from fakes.house import until
from fakes.programs import Served, serve, simulate

HOUR_SECONDS = 3600
RESIDENCE_SECONDS = 2.0
DEADLINE_SECONDS = 3.0
FIRST_TOKEN_SECONDS = 0.6
MOST_RETRY_AFTER_SECONDS = 60
"""Far above any wait here, and far below an hour."""
LATE_SECONDS = 5.0
"""How late a timer may be on a machine that is shared with anything; a clock that counts would be off by an hour."""

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))[:1]
"""Debian's faketime, which moves the clock of every library in a process, slowly; without it Python's own is moved."""
PATCH = """
import os, time

_right = time.time

def _moved():
    with open(os.environ["FAKETIME_TIMESTAMP_FILE"]) as file:
        return _right() + int(file.read())

time.time = _moved
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


class Told(NamedTuple):
    """What a refusal tells."""

    reason: str
    retry_after_seconds: int


class Wall:
    """The offset of another process's wall clock, held in a file that it reads at each look at the clock."""

    def __init__(self, place: Path, library: Path | None) -> None:
        self._place = place
        self._library = library
        self._file = place / "offset"
        self.move(0)

    def move(self, seconds: int) -> None:
        """Set the offset; the file is replaced, so that nobody reads half of it."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}")
        new.rename(self._file)

    async def swing(self) -> None:
        """Move it an hour forth and two back, over and over."""
        while True:
            await asyncio.sleep(0.05)
            self.move(-HOUR_SECONDS)
            await asyncio.sleep(0.05)
            self.move(HOUR_SECONDS)

    def environment(self) -> dict[str, str]:
        """Return the environment of the process; a monotonic clock is what a step of the wall clock leaves alone."""
        told = {"FAKETIME_TIMESTAMP_FILE": str(self._file)}
        if self._library is not None:
            return told | {"LD_PRELOAD": str(self._library), "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1"}
        (self._place / "sitecustomize.py").write_text(PATCH)
        return told | {"PYTHONPATH": os.pathsep.join([str(self._place), os.environ.get("PYTHONPATH", "")])}


@pytest.mark.parametrize("library", [None, *(pytest.param(path, marks=pytest.mark.soak) for path in LIBRARIES)])
async def test_waits_deadlines_and_retry_after_do_not_read_the_wall_clock(library: Path | None, tmp_path: Path) -> None:
    wall = Wall(tmp_path, library)
    async with (
        simulate("--step-seconds", "0.01", "--output-mean", "ceiling") as url,
        aiohttp.ClientSession() as session,
    ):
        # Beside the 9 tokens of the first there is no room for the 8 or 7 of another; after it there would be for both.
        toml = f"""
            lanes.interactive.max_residence_seconds = {RESIDENCE_SECONDS}
            [[pools]]
            gross_ceiling_tokens = 17
            replicas = [{{ name = "r1", url = "{url}" }}]
        """
        async with serve(tmp_path, toml, env=wall.environment()) as served:
            async with session.post(f"{url}/_simulate/faults", json={"stall_after_events": 1}) as ordered:
                assert ordered.status == HTTPStatus.OK
            async with asking(session, served, 8, {"x-llmshed-deadline-ms": f"{1000 * DEADLINE_SECONDS:.0f}"}) as runs:
                wall.move(HOUR_SECONDS)
                swinging = asyncio.ensure_future(wall.swing())
                hurries = {"x-slo-ttft-ms": f"{1000 * FIRST_TOKEN_SECONDS:.0f}"}
                # At once: the later the first one is, the longer it is expected to go on, and at last nobody may wait.
                hurried, waited = await asyncio.gather(
                    refused(session, served, 7, hurries), refused(session, served, 6, {})
                )
                assert (hurried.reason, waited.reason) == ("deadline_infeasible", "queue_timeout")
                for told in (hurried, waited):
                    assert 1 <= told.retry_after_seconds <= MOST_RETRY_AFTER_SECONDS
                assert runs.status == HTTPStatus.OK
                assert b"The request's own deadline of 3 s passed" in await runs.read()
                swinging.cancel()
            lines = {line["reason"]: line for line in await until(lambda: all_of(served, 3))}
    late, hasty, patient = (lines[reason] for reason in ("upstream_timeout", "deadline_infeasible", "queue_timeout"))
    assert DEADLINE_SECONDS <= late["total_seconds"] <= DEADLINE_SECONDS + LATE_SECONDS
    assert late["termination"] == "DD"
    assert hasty["total_seconds"] <= FIRST_TOKEN_SECONDS + LATE_SECONDS
    assert RESIDENCE_SECONDS <= patient["queue_seconds"] <= RESIDENCE_SECONDS + LATE_SECONDS
    for line in (hasty, patient):
        assert abs(line["time_seconds"] - late["time_seconds"]) > 0.9 * HOUR_SECONDS  # so the wall was really moved


def asking(
    session: aiohttp.ClientSession, served: Served, tokens: int, headers: Mapping[str, str]
) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
    body = {"inputs": "Hello", "parameters": {"max_new_tokens": tokens}}
    return session.post(f"{served.data}/generate_stream", json=body, headers=headers)


async def refused(session: aiohttp.ClientSession, served: Served, tokens: int, headers: Mapping[str, str]) -> Told:
    async with asking(session, served, tokens, headers) as answer:
        assert answer.status == HTTPStatus.TOO_MANY_REQUESTS
        return Told(answer.headers["x-llmshed-reason"], int(answer.headers["Retry-After"]))


def all_of(served: Served, number: int) -> list[dict[str, Any]] | None:
    lines = served.decisions()
    return lines if len(lines) == number else None
