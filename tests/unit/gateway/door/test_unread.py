"""Clients that take nothing of what is written: how long they are waited for."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from fakes.leaping import in_leaping_time
from llmshed.gateway.door.unread import PatientHandler

STALL_SECONDS = 60.0


class Wire(asyncio.Transport):
    """A connection that holds what is written until a test takes some of it."""

    def __init__(self) -> None:
        super().__init__()
        self.held = 100
        self.aborted = False

    def get_write_buffer_size(self) -> int:
        return self.held

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True

    def close(self) -> None:
        self.aborted = True


@asynccontextmanager
async def connection() -> AsyncIterator[tuple[PatientHandler, Wire]]:
    async def handle(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response()

    server, wire = web.Server(handle), Wire()
    handler = PatientHandler(server, loop=asyncio.get_running_loop(), write_stall_seconds=STALL_SECONDS)
    handler.connection_made(wire)
    try:
        yield handler, wire
    finally:
        handler.connection_lost(None)


async def never(_: PatientHandler, wire: Wire) -> None:
    """Take nothing."""
    await asyncio.sleep(1.5 * STALL_SECONDS)
    assert wire.aborted


async def now_and_then(_: PatientHandler, wire: Wire) -> None:
    """Take a byte every while."""
    for _byte in range(10):
        wire.held -= 1
        await asyncio.sleep(STALL_SECONDS / 4)
        assert not wire.aborted


async def all_of_it(handler: PatientHandler, wire: Wire) -> None:
    """Make room, so that the watch is over."""
    handler.resume_writing()
    await asyncio.sleep(1.5 * STALL_SECONDS)
    assert not wire.aborted


@pytest.mark.parametrize("taking", [never, now_and_then, all_of_it])
@in_leaping_time
async def test_who_takes_something_is_waited_for(taking: Callable[[PatientHandler, Wire], Awaitable[None]]) -> None:
    async with connection() as (handler, wire):
        handler.pause_writing()
        await taking(handler, wire)


async def test_a_connection_that_is_lost_is_watched_no_more() -> None:
    async with connection() as (handler, _):
        handler.pause_writing()
        assert handler._stall_timer is not None
        handler.connection_lost(None)
        assert handler._stall_timer is None
