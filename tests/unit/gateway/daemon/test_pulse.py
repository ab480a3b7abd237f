import asyncio
import logging

import pytest

from llmshed.gateway.daemon import pulse
from llmshed.gateway.daemon.notify import Notifier


class Heard(Notifier):
    """A notifier that keeps what it is told."""

    def __init__(self) -> None:
        super().__init__(None)
        self.told: list[str] = []

    def status(self, text: str) -> None:
        self.told.append(text)

    def beat(self) -> None:
        self.told.append("beat")


async def test_every_second_is_checked_and_told_and_a_status_only_when_it_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pulse, "CHECK_INTERVAL_SECONDS", 0)
    heard, checks = Heard(), 0
    enough = asyncio.Event()

    def check() -> None:
        nonlocal checks
        checks += 1
        if checks == 4:
            enough.set()

    task = asyncio.ensure_future(pulse.beat(check, lambda: "idle" if checks < 3 else "busy", heard))
    await asyncio.wait_for(enough.wait(), 30)
    task.cancel()
    assert heard.told[:5] == ["idle", "beat", "beat", "busy", "beat"]
    assert heard.told.count("busy") == 1


async def test_a_loop_that_stands_still_is_measured_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pulse, "LAG_INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr(pulse, "STALL_SECONDS", 0.02)
    loop = asyncio.get_running_loop()
    lags: list[float] = []
    task = asyncio.ensure_future(pulse.measure_lag(lags.append))
    await asyncio.sleep(0.002)
    until = loop.time() + 0.1
    while loop.time() < until:  # standing still is the point
        pass
    with caplog.at_level(logging.WARNING):
        await asyncio.sleep(0.005)
    task.cancel()
    assert max(lags) > 0.05
    assert "event_loop_stalled" in caplog.text
