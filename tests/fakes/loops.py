"""Running one asynchronous test on both event loops that the daemon may use."""

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

AsyncTest = Callable[..., Coroutine[Any, Any, None]]


def on_both_loops(test: AsyncTest) -> Callable[..., None]:
    """Make a test of an asynchronous function that runs once on asyncio's own loop and once on uvloop."""

    @functools.wraps(test)
    def run(*args: Any, new_loop: Callable[[], asyncio.AbstractEventLoop], **named: Any) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(test(*args, **named))

    asked = inspect.signature(test)
    extra = inspect.Parameter("new_loop", inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = asked.replace(parameters=[*asked.parameters.values(), extra])  # type: ignore[attr-defined]  # pytest reads it
    both = [asyncio.new_event_loop, uvloop.new_event_loop]
    parametrized: Callable[..., None] = pytest.mark.parametrize("new_loop", both, ids=["asyncio", "uvloop"])(run)
    return parametrized
