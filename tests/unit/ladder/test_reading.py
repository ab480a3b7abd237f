"""What the signals read at the end of a window."""

from fakes.ladders import reading
from llmshed.ladder.model import EntrySignal


def test_each_signal_reads_its_own_value() -> None:
    seen = reading(1.0, 4.0, 2.0, prefill_tokens=900, kv_used=0.8, preemptions=1.5, lost=2)

    assert {signal: seen.value(signal) for signal in EntrySignal} == {
        EntrySignal.QUEUE_DELAY: None,
        EntrySignal.QUEUED_PREFILL: 900,
        EntrySignal.OLDEST_AGE: 4.0,
        EntrySignal.KV_USED: 0.8,
        EntrySignal.PREEMPTIONS: 1.5,
        EntrySignal.REPLICAS_LOST: 2,
    }


def test_nobody_waits_for_no_time() -> None:
    assert reading().value(EntrySignal.OLDEST_AGE) == 0.0
