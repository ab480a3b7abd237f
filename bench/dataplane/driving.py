"""One round: clients against a proxy, and what the proxy's processes spent meanwhile."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataplane.asking import Chat
from dataplane.building import built
from dataplane.processes import NotRunningError, Program


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
        running: requests that had no whole answer yet at the end.
        events: stream events.
        answer_us: p50, p99 and maximum of the time to a whole answer; None without one.
        event_us: the same of the time from the replica's send of an event to its arrival.
        cpu_seconds: what the proxy spent.
        pss_bytes: its memory when the seconds that count began.
    """

    seconds: float
    answers: Mapping[int, int]
    cut: int
    running: int
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
        """Let clients ask, and return what each kind of them saw; the proxy's CPU time is that of them all.

        The first ask from the start of the warm time on, the others when it is over.

        Raises:
            NotRunningError: the proxy ended, or clients did.
        """
        with ExitStack() as stack:
            first = stack.enter_context(self._started(0, port, clients[0], warm_seconds, seconds))
            _line_of(first)  # "begin"
            memory, before = proxy.pss_bytes, proxy.cpu_seconds
            others = [
                stack.enter_context(self._started(number, port, one, 0.0, seconds))
                for number, one in enumerate(clients[1:], start=1)
            ]
            told = [_line_of(first)]
            spent = proxy.cpu_seconds - before
            for one in others:
                _line_of(one)
                told.append(_line_of(one))
        if proxy.process.poll() is not None:
            raise NotRunningError(proxy.why_it_ended())
        return tuple(_seen(json.loads(line), spent, memory) for line in told)

    @contextmanager
    def _started(
        self, number: int, port: int, clients: Clients, warm_seconds: float, seconds: float
    ) -> Iterator[subprocess.Popen[bytes]]:
        file = self._folder / f"request-{number}"
        file.write_bytes(clients.chat.message)
        kind = "open" if clients.open_loop else "closed"
        words = (kind, port, file, clients.number, warm_seconds, seconds)
        command = ["taskset", "-c", str(self.core), str(self._program), *map(str, words)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                yield process
            finally:
                process.kill()


def _line_of(clients: subprocess.Popen[bytes]) -> bytes:
    line = clients.stdout.readline() if clients.stdout else b""
    if not line:
        raise NotRunningError("the clients ended early")
    return line


def _seen(told: dict[str, Any], cpu_seconds: float, pss_bytes: int) -> Seen:
    return Seen(
        seconds=told["seconds"],
        answers={int(status): count for status, count in told["answers"].items()},
        cut=told["cut"] + told["not_sent"],
        running=told["running"],
        events=told["events"],
        answer_us=told["answer_us"],
        event_us=told["event_us"],
        cpu_seconds=cpu_seconds,
        pss_bytes=pss_bytes,
    )
