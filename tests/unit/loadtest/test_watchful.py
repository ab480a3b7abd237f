"""Prompts that others send to a replica show in its own counter."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from llmshed.engines.base import Activity
from llmshed.engines.registry import readable_engine
from llmshed.loadtest.watchful import SPARE_TOKENS, WatchfulSender
from llmshed.workload.asks import Ask, Outcome, Sample


class Replica:
    """Answers `/metrics` and takes asks, as a client and a sender do."""

    def __init__(self) -> None:
        self.engine = readable_engine("vllm")
        self.clock = SimpleNamespace(now=lambda: 5.0)
        self.taken = 1000

    async def page(self, path: str) -> bytes:
        assert path == "/metrics"
        return b'vllm:prompt_tokens_total{engine="0"} %d\nvllm:num_requests_waiting{engine="0"} 2\n' % self.taken

    async def carry(self, ask: Ask, planned_at: float, on_first_token: Any) -> Sample:
        on_first_token()
        self.taken += ask.input_tokens
        return Sample(ask, planned_at, planned_at, (), planned_at, Outcome.FINISHED, 200, 1)


async def foreign(before: Activity | None, others: int) -> float:
    replica = Replica()
    sender = WatchfulSender(cast("Any", replica), cast("Any", replica), None, before)
    for number in range(10):
        ask = Ask(str(number), 500, 5, runs_to_ceiling=False, lane=None)
        await sender.carry(ask, 1.0, lambda: None)
    replica.taken += others
    reading = await sender.read()
    assert (reading.at, reading.queued_requests) == (5.0, 2.0)
    return sender.foreign_tokens


@pytest.mark.parametrize(
    ("before", "others", "seen"),
    [
        (Activity(prompt_tokens_total=1000.0), 0, 0.0),
        (Activity(prompt_tokens_total=1000.0), SPARE_TOKENS + 50, 0.0),
        (Activity(prompt_tokens_total=1000.0), SPARE_TOKENS + 50 + 30, 30.0),
        (Activity(), 9000, 0.0),
        (None, 9000, 0.0),
    ],
)
async def test_what_was_not_sent_from_here_is_foreign(before: Activity | None, others: int, seen: float) -> None:
    assert await foreign(before, others) == pytest.approx(seen)
