"""One round: clients against a proxy, and what the proxy's processes spent meanwhile."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataplane.asking import Chat
from dataplane.building import built
from dataplane.processes import NotRunningError, Program

_LATE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Clients:
    """Clients that all do the same.

    Args:
        chat: what they ask.
        number: how many there are; with `open_loop`, requests a second.
        open_loop: whether they ask at their own pace and not at the proxy's.
    """

    chat: Chat
    number: float
    open_loop: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What clients saw in the seconds that count.

    Args:
        seconds: how many there were.
        answers: whole answers, by status.
        cut: answers that broke off, and connections that were refused.
        events: stream events.
        answer_us: p50, p99 and maximum of the time to a whole answer; None without one.
        event_us: the same of the time from the replica's send of an event to its arrival.
        cpu_seconds: what the proxy spent.
        pss_bytes: its memory when the seconds that count began.
    """

    seconds: float
    answers: Mapping[int, int]
    cut: int
    events: int
    answer_us: Sequence[float | None]
    event_us: Sequence[float | None]
    cpu_seconds: float
    pss_bytes: int

    @property
    def requests(self) -> int:
        """Return how many whole answers there were, refusals included."""
        return sum(self.answers.values())

    @property
    def failures(self) -> int:
        """Return how much of what was asked went wrong: no refusal is expected where this is looked at."""
        return self.cut + sum(count for status, count in self.answers.items() if status != 200)


class Driver:
    """Starts clients on a core of their own."""

    def __init__(self, folder: Path, core: int) -> None:
        """Keep requests in `folder`.

        Raises:
            NotRunningError: the clients cannot be compiled.
        """
        self._program = built("clients")
        self._folder = folder
        self.core = core

    def drive(
        self, port: int, proxy: Program, warm_seconds: float, seconds: float, *clients: Clients
    ) -> tuple[Seen, ...]:
        """Let clients ask at once, and return what each kind of them saw; the proxy's CPU time is that of them all.

        Raises:
            NotRunningError: the proxy ended, or clients did not end in time.
        """
        with ExitStack() as stack:
            started = [
                stack.enter_context(self._start(number, port, one, warm_seconds, seconds))
                for number, one in enumerate(clients)
            ]
            for process in started:
                stack.callback(process.kill)
            first = started[0]
            if first.stdout is None or not first.stdout.readline():
                raise NotRunningError("the clients did not begin")
            memory = proxy.pss_bytes
            before = proxy.cpu_seconds
            line = first.stdout.readline()
            spent = proxy.cpu_seconds - before
            told = [line, *(process.communicate(timeout=_LATE_SECONDS)[0] for process in started[1:])]
        if proxy.process.poll() is not None:
            raise NotRunningError(proxy.why_it_ended())
        return tuple(_seen(json.loads(lines.strip().rpartition(b"\n")[2]), spent, memory) for lines in told)

    def _start(
        self, number: int, port: int, clients: Clients, warm_seconds: float, seconds: float
    ) -> subprocess.Popen[bytes]:
        file = self._folder / f"request-{number}"
        file.write_bytes(clients.chat.message)
        kind = "open" if clients.open_loop else "closed"
        words = (kind, port, file, clients.number, warm_seconds, seconds)
        command = ["taskset", "-c", str(self.core), str(self._program), *map(str, words)]
        return subprocess.Popen(command, stdout=subprocess.PIPE)


def _seen(told: dict[str, Any], cpu_seconds: float, pss_bytes: int) -> Seen:
    return Seen(
        seconds=told["seconds"],
        answers={int(status): count for status, count in told["answers"].items()},
        cut=told["cut"] + told["not_sent"],
        events=told["events"],
        answer_us=told["answer_us"],
        event_us=told["event_us"],
        cpu_seconds=cpu_seconds,
        pss_bytes=pss_bytes,
    )
