"""Counts of served prompts: every one is compared, differences are logged now and then, nothing else is done."""

import logging

import pytest

from llmshed.gateway.replicas.served_counts import LOG_SECONDS, ServedCounts


class Seen:
    """What was compared, and a clock to be set."""

    def __init__(self) -> None:
        self.compared: list[tuple[str, bool]] = []
        self.now = 1000.0
        self.counts = ServedCounts(self, lambda: self.now)

    def count_compared(self, replica: str, *, equal: bool) -> None:
        self.compared.append((replica, equal))


@pytest.fixture
def seen() -> Seen:
    return Seen()


def test_every_prompt_is_compared_and_equal_counts_are_not_worth_a_line(
    seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    seen.counts.compare("r1", 10, 10)
    seen.counts.compare("r1", 10, 12)
    seen.counts.compare("r2", 7, 7)
    assert seen.compared == [("r1", True), ("r1", False), ("r2", True)]
    assert len(caplog.records) == 1
    assert seen.counts.report() == {
        "r1": {"compared": 2, "unlike": 1, "most_tokens": 2},
        "r2": {"compared": 1, "unlike": 0, "most_tokens": 0},
    }


def test_a_replica_has_a_line_a_minute(seen: Seen, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for second in range(61):
        seen.now = 1000.0 + second * LOG_SECONDS / 60
        seen.counts.compare("r1", 10, 15)
        seen.counts.compare("r2", 10, 9)
    lines = [vars(record) for record in caplog.records]
    assert [(line["replica"], line["differences"], line["since_seconds"]) for line in lines] == [
        ("r1", 1, None),
        ("r2", 1, None),
        ("r1", 60, LOG_SECONDS),
        ("r2", 60, LOG_SECONDS),
    ]
    assert {line["msg"] for line in lines} == {"served_counts_differ"}
    assert seen.counts.report()["r2"] == {"compared": 61, "unlike": 61, "most_tokens": 1}


def test_a_replica_that_is_gone_is_forgotten(seen: Seen) -> None:
    seen.counts.compare("r1", 10, 15)
    seen.counts.forget("r1")
    seen.counts.forget("r9")
    assert seen.counts.report() == {}
