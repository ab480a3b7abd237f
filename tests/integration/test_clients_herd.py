"""Callers who are refused together come back apart, though each waits exactly as long as it was told."""

import asyncio
from itertools import groupby

import pytest

from fakes.clients import Job
from fakes.clients_states import SEATS
from fakes.clients_table import HERE
from fakes.seats import small_house, stuck

CALLERS = 60
JITTER_RATIO = 1.0
LEAST_WAIT_SECONDS = 1.0
"""The estimate behind requests that are overdue, so the jitter is drawn from a width of at least this ratio of it."""


@pytest.mark.slow
async def test_callers_who_are_refused_together_come_back_apart() -> None:
    pytest.importorskip("openai", reason="extra `clients` is not installed")
    jittered = f"admission.retry_jitter_ratio = {JITTER_RATIO}\n[lanes.interactive]\nqueue_requests = 0\n"
    async with small_house(jittered, SEATS) as gate, stuck(gate, 8):
        with HERE.client() as client:
            herd = Job("caller", "openai_herd", gate.data, options={"callers": CALLERS})
            await asyncio.to_thread(client.ask, [herd])
        lines = [line for line in gate.decisions if line["request_id"].startswith("caller-")]
    lines.sort(key=lambda line: (line["request_id"], line["time_seconds"]))
    pairs = [[*tries] for _, tries in groupby(lines, key=lambda line: line["request_id"])]
    assert [len(tries) for tries in pairs] == [2] * CALLERS
    waits = [again["time_seconds"] - first["time_seconds"] for first, again in pairs]
    assert all(wait >= first["retry_after_seconds"] - 0.02 for wait, (first, _) in zip(waits, pairs, strict=True))
    assert max(waits) - min(waits) >= 0.5 * JITTER_RATIO * LEAST_WAIT_SECONDS
    came = sorted(again["time_seconds"] for _, again in pairs)
    together = max(sum(at <= one < at + 0.1 for one in came) for at in came)
    print(f"\n{CALLERS} came back over {came[-1] - came[0]:.2f} s, at most {together} within 0.1 s")  # noqa: T201 - figure
    assert together <= CALLERS / 2
