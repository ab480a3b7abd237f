"""Programs that the bench starts: pinned to a core, waited for, watched from outside, and ended by their own ids."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 180.0
"""Bound on the start of one program; proxies that import half of PyPI take most of a minute on a busy machine."""
_END_SECONDS = 3.0
_LOOK_SECONDS = 0.05


class NotRunningError(Exception):
    """A program did not start, or ended by itself; the text says why in one line."""


@dataclass(frozen=True, slots=True)
class Program:
    """A running program with everything that it has started."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def ids(self) -> list[int]:
        """Return the ids of the process and of its descendants."""
        return _tree(self.process.pid)

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU time of all its processes, threads that have ended included."""
        # The number of the clock of a process, as clock_getcpuclockid(3) makes it; its unit is the nanosecond.
        return sum(time.clock_gettime((~process << 3) | 2) for process in self.ids)

    @property
    def pss_bytes(self) -> int:
        """Return its memory: what it shares with others counts by its part."""
        return sum(_pss_bytes(process) for process in self.ids)

    def let_run_on(self, cores: Sequence[int]) -> None:
        """Let every thread of it run on these cores from now on."""
        for process in self.ids:
            for thread in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208 - numbers, not paths
                os.sched_setaffinity(int(thread), cores)

    def why_it_ended(self) -> str:
        """Return the last line that it wrote."""
        lines = self.log.read_text("utf-8", "replace").split("\n")
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "it wrote nothing")


@contextmanager
def running(
    command: Sequence[str | Path],
    log: Path,
    core: int,
    ready: Callable[[], bool],
    environ: Mapping[str, str] | None = None,
) -> Iterator[Program]:
    """Run a program on one core until the block ends; what it writes goes into `log`.

    Raises:
        NotRunningError: it ended before it was `ready`, or is not after `START_SECONDS`.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LLMSHED_")}
    with log.open("wb") as into:
        process = subprocess.Popen(
            ["taskset", "-c", str(core), *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=into,
            stderr=into,
            env=clean | dict(environ or {}),
        )
    program = Program(process, log)
    try:
        _wait_until(ready, program)
        yield program
    finally:
        _end(program)


def tool(name: str, package: str) -> str:
    """Return the path of a program of the machine.

    Raises:
        NotRunningError: it is not installed; the text names its Debian package.
    """
    found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if found is None:
        raise NotRunningError(f"{name} is not installed; on Debian: apt install {package}")
    return found


def free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Say whether somebody takes connections on a port of loopback."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def two_cores() -> tuple[int, int]:
    """Return a core for what is measured and one for everything else."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("dataplane: two cores are needed, one for the proxy and one for its clients and its replica")
    return cores[0], cores[1]


def _wait_until(ready: Callable[[], bool], program: Program) -> None:
    until = time.monotonic() + START_SECONDS
    while not ready():
        if program.process.poll() is not None:
            raise NotRunningError(program.why_it_ended())
        if time.monotonic() > until:
            raise NotRunningError(f"not ready after {START_SECONDS:.0f} s: {program.why_it_ended()}")
        time.sleep(_LOOK_SECONDS)


def _end(program: Program) -> None:
    """End a program and whatever it started, gently first; the second signal tells a gateway not to drain."""
    ids = program.ids
    for number in (signal.SIGTERM, signal.SIGINT):
        _tell(ids, number)
    with suppress(subprocess.TimeoutExpired):
        program.process.wait(_END_SECONDS)
    until = time.monotonic() + _END_SECONDS
    while (alive := [process for process in ids if is_alive(process)]) and time.monotonic() < until:
        _tell(alive, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)
    program.process.wait()


def _tell(ids: Sequence[int], number: signal.Signals) -> None:
    for process in ids:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def is_alive(process: int) -> bool:
    """Say whether a process runs; one that nobody has asked for its end yet does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] not in {"Z", "X"}


def _tree(process: int) -> list[int]:
    found = [process]
    for parent in found:
        with suppress(OSError):
            for thread in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (thread / "children").read_text("ascii").split())
    return [one for one in found if Path(f"/proc/{one}").is_dir()]


def _pss_bytes(process: int) -> int:
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text("ascii")
    (line,) = (line for line in rollup.split("\n") if line.startswith("Pss:"))
    return 1024 * int(line.split()[1])
