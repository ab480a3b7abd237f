"""Peers of whom nothing is heard while bytes are under way to them."""

import asyncio
import socket
import struct

import pytest

from llmshed.gateway.door import vanished
from llmshed.gateway.door.vanished import end_vanished, has_vanished, probe_idle


class Line:
    """A socket whose kernel tells what a test says of it; the places are those of linux/tcp.h."""

    def __init__(self, segments: int, since_data_ms: int, since_acknowledgement_ms: int) -> None:
        info = bytearray(104)
        struct.pack_into("=I", info, 24, segments)  # tcpi_unacked
        struct.pack_into("=I", info, 52, since_data_ms)  # tcpi_last_data_recv
        struct.pack_into("=I", info, 56, since_acknowledgement_ms)  # tcpi_last_ack_recv
        self.info = bytes(info)

    def getsockopt(self, level: int, name: int, size: int) -> bytes:
        assert (level, name) == (socket.IPPROTO_TCP, socket.TCP_INFO)
        return self.info[:size]


class Wire(asyncio.Transport):
    def __init__(self, line: object) -> None:
        super().__init__({"socket": line})
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


@pytest.mark.parametrize(
    ("segments", "since_data_ms", "since_acknowledgement_ms", "gone"),
    [
        (3, 60_000, 15_000, True),
        (3, 60_000, 14_999, False),  # it answers now and then, if only that it takes nothing
        (3, 100, 60_000, False),  # it still sends a long body, in which nothing has to be acknowledged
        (0, 600_000, 600_000, False),  # the kernel's own probes are for that
    ],
)
def test_a_peer_is_gone_that_was_not_heard_while_bytes_are_under_way(
    segments: int, since_data_ms: int, since_acknowledgement_ms: int, *, gone: bool
) -> None:
    assert has_vanished(Wire(Line(segments, since_data_ms, since_acknowledgement_ms))) == gone


async def test_those_that_are_gone_are_cut_off_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vanished, "LOOK_SECONDS", 0)
    wires = [Wire(Line(number % 2, 60_000, 60_000)) for number in range(1000)]
    watching = asyncio.ensure_future(end_vanished(lambda: wires))
    while not wires[-1].aborted:  # noqa: ASYNC110 - the watch has no event for it
        await asyncio.sleep(0)
    watching.cancel()
    await asyncio.wait([watching])
    assert [wire.aborted for wire in wires] == [bool(number % 2) for number in range(1000)]


def test_what_is_no_tcp_connection_is_left_alone() -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        assert not has_vanished(Wire(sock))
    assert not has_vanished(Wire(None))


def test_an_idle_peer_that_answers_no_probe_is_gone_in_less_than_twenty_seconds() -> None:
    with socket.socket() as sock:
        probe_idle(sock)
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        idle, interval, probes = (sock.getsockopt(socket.IPPROTO_TCP, option) for option in options)
    assert idle + interval * probes < 20
