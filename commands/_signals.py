"""Signals that end a process, made its ordinary way out, so that what it keeps meanwhile is removed."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Have SIGTERM and SIGHUP raise `SystemExit` inside, with the code by which a shell tells of them.

    By default they end the process at once, and its temporary files stay. One that is ignored (`nohup`) stays so.
    """
    taken = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def cancel_in_order() -> None:
    """Have SIGTERM and SIGHUP cancel the task that calls this, as Ctrl-C does under `asyncio.Runner`.

    Theirs is its loop, which is closed with it. One that is ignored (`nohup`) stays so.
    """
    import asyncio

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    for number in _ENDING:
        if task is not None and signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, task.cancel)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
