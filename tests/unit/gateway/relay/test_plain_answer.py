"""The hand-over of a body: to a reader that waits, to a taker at once, and what happens to the replica meanwhile."""

import asyncio
from dataclasses import dataclass, field

import pytest

from fakes.loops import on_both_loops
from llmshed.gateway.relay.answer_parser import AnswerHead
from llmshed.gateway.relay.plain_answer import MOST_HELD_BYTES, PlainAnswer
from llmshed.gateway.relay.upstream import LostError, NotSentError

HEAD = AnswerHead(200, {"X-A": "1"})


@dataclass
class Carried:
    """A connection that only notes what it is asked for."""

    asked: list[str] = field(default_factory=list)

    def pause(self) -> None:
        self.asked.append("pause")

    def resume(self) -> None:
        self.asked.append("resume")

    def abort(self) -> None:
        self.asked.append("abort")

    def paused(self) -> bool:
        told = [what for what in self.asked if what != "abort"]
        return bool(told) and told[-1] == "pause"


def opened() -> tuple[PlainAnswer, Carried]:
    carrier = Carried()
    return PlainAnswer(carrier, asyncio.get_running_loop()), carrier


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@on_both_loops
async def test_whoever_asked_waits_for_the_head_and_then_reads_what_came() -> None:
    answer, _ = opened()
    with pytest.raises(RuntimeError):
        _ = answer.status
    waiting = asyncio.ensure_future(answer.until_begun())
    await settle()
    answer.begin(HEAD)
    answer.push(b"he")
    answer.push(b"llo")
    await waiting
    assert (answer.status, answer.headers) == HEAD
    assert await answer.read() == b"hello"
    reading = asyncio.ensure_future(answer.read())
    await settle()
    answer.push(b"!")
    assert await reading == b"!"
    answer.finish()
    assert await answer.read() == b""
    assert await answer.read() == b""


@pytest.mark.parametrize("error", [LostError("lost"), NotSentError("unread")])
@on_both_loops
async def test_a_loss_is_told_after_what_came_before_it(error: LostError | NotSentError) -> None:
    answer, _ = opened()
    waiting = asyncio.ensure_future(answer.until_begun())
    await settle()
    answer.fail(error)
    with pytest.raises(type(error)):
        await waiting
    answer.push(b"late")
    assert await answer.read() == b"late"
    with pytest.raises(type(error)):
        await answer.read()


@on_both_loops
async def test_a_taker_gets_what_was_held_and_then_each_piece_where_it_arrives() -> None:
    answer, _ = opened()
    answer.begin(HEAD)
    answer.push(b"a")
    answer.push(b"b")
    taken: list[bytes] = []

    def take(piece: bytes) -> bool:
        taken.append(piece)
        return True

    delivering = asyncio.ensure_future(answer.deliver(take))
    await settle()
    assert taken == [b"ab"]
    answer.push(b"c")
    assert taken == [b"ab", b"c"]  # no turn of the loop lies between
    answer.push(b"d")
    answer.finish()
    assert await delivering is False
    assert taken == [b"ab", b"c", b"d"]


@on_both_loops
async def test_a_taker_that_has_enough_stops_the_replica_until_it_asks_again() -> None:
    answer, carrier = opened()
    answer.begin(HEAD)
    taken: list[bytes] = []

    def take(piece: bytes) -> bool:
        taken.append(piece)
        return len(taken) != 2

    delivering = asyncio.ensure_future(answer.deliver(take))
    await settle()
    answer.push(b"a")
    answer.push(b"b")
    assert carrier.paused()
    answer.push(b"c")  # was on its way
    assert taken == [b"a", b"b"]
    assert await delivering is True
    delivering = asyncio.ensure_future(answer.deliver(take))
    await settle()
    assert taken == [b"a", b"b", b"c"]
    assert not carrier.paused()
    answer.finish()
    assert await delivering is False


@on_both_loops
async def test_the_end_that_comes_while_a_taker_has_enough_is_not_missed() -> None:
    answer, _ = opened()
    answer.begin(HEAD)
    delivering = asyncio.ensure_future(answer.deliver(lambda _: False))
    await settle()
    answer.push(b"a")
    answer.finish()
    assert await delivering is True
    assert await answer.deliver(lambda _: False) is False


@on_both_loops
async def test_what_a_taker_raises_comes_out_where_it_was_given() -> None:
    answer, _ = opened()
    answer.begin(HEAD)

    def take(piece: bytes) -> bool:
        raise ValueError(piece)

    delivering = asyncio.ensure_future(answer.deliver(take))
    await settle()
    answer.push(b"a")
    answer.push(b"b")
    with pytest.raises(ValueError, match="a"):
        await delivering
    with pytest.raises(ValueError, match="b"):
        await answer.deliver(take)


@on_both_loops
async def test_a_reader_that_pauses_stops_the_replica_and_reading_on_lets_it_go_on() -> None:
    answer, carrier = opened()
    answer.begin(HEAD)
    answer.push(b"x" * MOST_HELD_BYTES)
    assert not carrier.paused()
    answer.push(b"x")
    assert carrier.paused()
    assert len(await answer.read()) == MOST_HELD_BYTES + 1
    reading = asyncio.ensure_future(answer.read())
    await settle()
    assert not carrier.paused()
    answer.finish()
    assert await reading == b""


@on_both_loops
async def test_closing_cuts_the_connection_and_wakes_whoever_waits() -> None:
    answer, carrier = opened()
    answer.begin(HEAD)
    delivering = asyncio.ensure_future(answer.deliver(lambda _: True))
    await settle()
    answer.close()
    answer.close()
    with pytest.raises(LostError):
        await delivering
    assert carrier.asked.count("abort") == 1


@on_both_loops
async def test_closing_after_the_end_leaves_the_connection_to_others() -> None:
    answer, carrier = opened()
    answer.begin(HEAD)
    answer.push(b"unread")
    answer.finish()
    answer.close()
    assert "abort" not in carrier.asked


@on_both_loops
async def test_a_cancelled_delivery_takes_nothing_more() -> None:
    answer, _ = opened()
    answer.begin(HEAD)
    taken: list[bytes] = []

    def take(piece: bytes) -> bool:
        taken.append(piece)
        return True

    delivering = asyncio.ensure_future(answer.deliver(take))
    await settle()
    delivering.cancel()
    await asyncio.wait({delivering})
    answer.push(b"a")
    assert taken == []
    assert await answer.read() == b"a"
