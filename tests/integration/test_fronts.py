"""Doubtful framings through a real nginx and a real haproxy: what the front sent is what the gateway read."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from fakes.ears import Ears
from fakes.framing import BEHIND, PATHS, Case, Read, own_cases, reference_cases
from fakes.fronts import Proxy, haproxy, haproxy_before, nginx, nginx_before
from fakes.house import House, house, until
from fakes.wire import answers, talk

FRONTS = [
    pytest.param(nginx_before, id="nginx", marks=pytest.mark.skipif(nginx() is None, reason="nginx is not installed")),
    pytest.param(
        haproxy_before, id="haproxy", marks=pytest.mark.skipif(haproxy() is None, reason="haproxy is not installed")
    ),
]
pytestmark = pytest.mark.slow


@pytest.fixture
async def gate() -> AsyncIterator[House]:
    async with house() as running:
        yield running


@pytest.mark.parametrize("before", FRONTS)
async def test_what_a_front_sends_is_what_is_read(
    before: Callable[[int, Path], AbstractAsyncContextManager[Proxy]],
    gate: House,
    data_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ears = Ears(monkeypatch)
    cases = [*reference_cases(data_dir), *own_cases()]
    async with before(gate.port, tmp_path) as front:
        for number, case in enumerate(cases):
            await talk(front.port, case.payload + BEHIND)
            assert "of-a-trailer" not in ears.ids, case.name
            assert set(ears.take()) <= _readings(case), case.name
            # Another client, over the connections that the front has kept: its own answer, at once.
            request = f"GET /after HTTP/1.1\r\nHost: a\r\nX-Request-Id: n{number}\r\nConnection: close\r\n\r\n"
            (answer,) = answers(await talk(front.port, request.encode()))
            assert (answer.status, answer.field("x-request-id")) == (200, f"n{number}"), case.name
            assert ears.take() == (("GET", "/after", b""),), case.name
        assert ears.heard > len(cases)
        await until(lambda: front.sent() == ears.heard)


def _readings(case: Case) -> set[Read]:
    """Return what may be read behind a front: it may mend what a listener of its own refuses, and never more."""
    mended = {(method, path, body) for method in ("GET", "POST") for path in PATHS for body in (b"", b"hello")}
    return {*case.reading, *mended}
