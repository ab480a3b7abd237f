"""What the generator says of itself."""

import asyncio
import time

import pytest

from llmshed.clock import SystemClock
from llmshed.loadtest.meter import MOST_LATE_SECONDS, Meter


def test_a_generator_that_did_nothing_is_not_limited() -> None:
    doing = Meter(SystemClock()).doing()
    assert (doing.generator_limited, doing.lateness_p99, doing.lag_p99, doing.cpu_p90) == (False, None, None, None)


def test_late_sends_limit_it_from_a_hundredth_on() -> None:
    meter = Meter(SystemClock())
    for _ in range(995):
        meter.sent(0.001)
    meter.sent(-0.001)  # a timer that fired early is not late
    for _ in range(4):
        meter.sent(2 * MOST_LATE_SECONDS)
    assert not meter.doing().generator_limited
    for _ in range(20):
        meter.sent(2 * MOST_LATE_SECONDS)
    (said,) = meter.doing().limits
    assert said == "a hundredth of the sends was 20 ms or more behind its plan (10 ms)"
    patient = Meter(SystemClock(), most_late_seconds=0.07)
    for _ in range(100):
        patient.sent(0.05)
    assert not patient.doing().generator_limited


def test_sends_that_could_not_be_made_are_told() -> None:
    meter = Meter(SystemClock())
    meter.held_back()
    meter.out_of_files()
    assert [limit.split(" ")[2] for limit in meter.doing().limits] == ["were", "failed"]


async def test_a_loop_that_is_held_up_lags_and_a_busy_core_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmshed.loadtest.meter.TICK_SECONDS", 0.001)
    monkeypatch.setattr("llmshed.loadtest.meter.WINDOW_SECONDS", 0.02)
    meter = Meter(SystemClock())
    watching = asyncio.ensure_future(meter.watch())
    for _ in range(4):
        await asyncio.sleep(0)
        time.sleep(0.03)  # noqa: ASYNC251 - the fault
    await asyncio.sleep(0.005)
    watching.cancel()
    doing = meter.doing()
    assert doing.lag_p99 is not None
    assert doing.lag_p99 >= 0.02
    assert any("event loop lagged" in limit for limit in doing.limits)
    assert doing.cpu_p90 is not None
