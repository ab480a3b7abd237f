"""Names of replicas: asked for once, remembered for a while, and asked for again after a failure."""

import asyncio
import socket
import threading

import pytest

from fakes.loops import on_both_loops
from llmshed.gateway.relay import names
from llmshed.gateway.relay.names import Names


class Resolver:
    """Stands in for the system's resolver; `answers` are given in turn, the last for ever."""

    def __init__(self, *answers: list[str] | OSError) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.may_answer = threading.Event()
        self.may_answer.set()

    def __call__(self, host: str) -> list[str]:
        assert host == "replica.example"
        self.may_answer.wait(5)
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, OSError):
            raise answer
        return answer


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> Resolver:
    resolver = Resolver(["10.0.0.7", "10.0.0.8"], ["10.0.0.9"])
    monkeypatch.setattr(names, "_look_up", resolver)
    return resolver


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "fe80::1%lo"])
@on_both_loops
async def test_an_address_is_its_own_answer(patched: Resolver, address: str) -> None:
    assert await Names().addresses(address) == [address]
    assert patched.asked == 0


@on_both_loops
async def test_a_burst_asks_once_and_one_that_leaves_takes_nobody_with_it(patched: Resolver) -> None:
    known = Names()
    patched.may_answer.clear()
    burst = [asyncio.ensure_future(known.addresses("replica.example")) for _ in range(20)]
    await asyncio.sleep(0.01)
    burst[0].cancel()
    patched.may_answer.set()
    assert await asyncio.gather(*burst[1:]) == [["10.0.0.7", "10.0.0.8"]] * 19
    assert await known.addresses("replica.example") == ["10.0.0.7", "10.0.0.8"]
    assert patched.asked == 1


@pytest.mark.usefixtures("patched")
@on_both_loops
async def test_a_name_that_moved_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "FRESH_SECONDS", 0.0)
    known = Names()
    assert await known.addresses("replica.example") == ["10.0.0.7", "10.0.0.8"]
    assert await known.addresses("replica.example") == ["10.0.0.9"]


@on_both_loops
async def test_a_failure_is_told_and_not_remembered(patched: Resolver) -> None:
    patched.answers = [socket.gaierror(-3, "try again"), ["10.0.0.7"]]
    known = Names()
    with pytest.raises(socket.gaierror):
        await known.addresses("replica.example")
    assert await known.addresses("replica.example") == ["10.0.0.7"]


@on_both_loops
async def test_the_systems_own_resolver_knows_this_machine() -> None:
    assert set(await Names().addresses("localhost")) <= {"127.0.0.1", "::1"}
