"""Programs as an operator starts them: `llmshed serve` and `llmshed simulate` in processes of their own."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

LLMSHED = Path(sys.executable).with_name("llmshed")
START_SECONDS = 60.0
"""Bound on any one wait for a program; loading a large tokenizer on a busy machine takes seconds."""


@dataclass(slots=True)
class Program:
    """A running program and everything that it has written so far."""

    process: asyncio.subprocess.Process
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    _wrote: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def until(self, found: Callable[[], Any]) -> Any:
        """Wait until what the program wrote makes `found` true, and return what it returned."""
        async with asyncio.timeout(START_SECONDS), self._wrote:
            while not (what := found()):
                assert self.process.returncode is None, self.stderr.decode()
                await self._wrote.wait()
        return what

    async def ended(self) -> int:
        """Wait for the end of the program, and return its exit code."""
        async with asyncio.timeout(START_SECONDS):
            return await self.process.wait()

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return the lines of the log that tell of this event."""
        return [line for line in _json_lines(self.stderr) if line.get("event") == event]

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))  # noqa: PTH208 - only counted

    async def read(self, stream: asyncio.StreamReader | None, into: bytearray) -> None:
        assert stream is not None
        while part := await stream.read(65_536):
            into.extend(part)
            async with self._wrote:
                self._wrote.notify_all()
        await self.process.wait()  # so that whoever waits for words of a program that is gone learns of its end
        async with self._wrote:
            self._wrote.notify_all()


@dataclass(frozen=True, slots=True)
class Served:
    """A running gateway: its process, the addresses of its listeners, and the file of its decision log."""

    program: Program
    data: str
    admin: str
    decisions_file: Path
    config_file: Path

    @property
    def port(self) -> int:
        return int(self.data.rpartition(":")[2])

    def decisions(self) -> list[dict[str, Any]]:
        return list(_json_lines(self.decisions_file.read_bytes()))


@asynccontextmanager
async def program(*arguments: str | Path, env: dict[str, str] | None = None) -> AsyncIterator[Program]:
    """Run `llmshed ARGUMENTS`; afterwards it is told to stop twice, which ends it at once."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LLMSHED_")}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        LLMSHED, *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=clean | (env or {})
    )
    running = Program(process)
    readers = [
        asyncio.ensure_future(running.read(process.stdout, running.stdout)),
        asyncio.ensure_future(running.read(process.stderr, running.stderr)),
    ]
    try:
        yield running
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):  # two numbers, since equal pending signals are one
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
        try:
            await running.ended()
        finally:
            if process.returncode is None:
                process.kill()
            await asyncio.wait(readers)


@asynccontextmanager
async def simulate(*options: str | Path) -> AsyncIterator[str]:
    """Run `llmshed simulate` on a free port and return its URL."""
    async with program("simulate", "--port", "0", "--json", *options) as running:
        line = await running.until(lambda: running.stdout.endswith(b"}\n") and bytes(running.stdout))
        yield orjson.loads(line)["url"]


@asynccontextmanager
async def serve(place: Path, toml: str, *options: str, env: dict[str, str] | None = None) -> AsyncIterator[Served]:
    """Run `llmshed serve` on free ports by the configuration `toml`, written into `place`, until it is ready."""
    file, decisions = place / "llmshed.toml", place / "decisions.jsonl"
    file.write_text(toml)
    ports = ("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
    log = ("--set", f"log.decisions={decisions}")
    async with program("serve", "--config", file, *ports, *log, *options, env=env) as running:
        (ready,) = await running.until(lambda: running.logged("ready"))
        yield Served(running, ready["data"], ready["admin"], decisions, file)


def _json_lines(written: bytes | bytearray) -> list[dict[str, Any]]:
    """Return the objects among complete lines; the sentences before the log are none."""
    lines = bytes(written).split(b"\n")[:-1]
    return [orjson.loads(line) for line in lines if line.startswith(b"{")]
