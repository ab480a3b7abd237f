"""Each step says what it saw, or that it has no data."""

from random import Random

import pytest

from fakes.incident import BEGINS, staged
from llmshed.diagnosis.facts import Facts
from llmshed.diagnosis.steps import State, counting_is_right, latency_against_bulk, refusals_come_first

DRAW = Random(0).randrange  # noqa: S311 - a bootstrap's draws


@pytest.mark.parametrize(
    ("changed", "state", "words"),
    [
        ({}, State.GOOD, "Prompts that an engine counted otherwise: 0."),
        ({"miscounted": 2.0}, State.WRONG, "otherwise: 2."),
        ({"counting_p95": 0.6}, State.WRONG, "at the 95th percentile"),
        ({"interactive_share": 0.5}, State.WRONG, "Interactive part of the arrivals: "),
    ],
)
def test_counts_and_lanes(changed: dict[str, float], state: State, words: str) -> None:
    # Nobody suffers, so that the whole window counts: let it be changed from its beginning.
    first = counting_is_right(staged(changed, begins=dict.fromkeys(changed, 3600.0)))
    assert (first.number, first.state) == (1, state)
    assert any(words in sentence for sentence in first.sentences)


def test_without_data_a_step_says_so() -> None:
    empty = Facts({}, 0.0, 60.0, {})
    third, found = latency_against_bulk(empty, DRAW)
    assert [counting_is_right(empty).state, refusals_come_first(empty).state, third.state] == [State.UNKNOWN] * 3
    assert found is None


@pytest.mark.parametrize(
    ("refused_at", "aged_at", "state", "words"),
    [
        (BEGINS, BEGINS + 60, State.GOOD, "60 s before"),
        (BEGINS + 60, BEGINS, State.WRONG, "aged 60 s before"),
        (BEGINS, BEGINS, State.GOOD, "0 s before"),
        (9999.0, BEGINS, State.WRONG, "nothing was refused"),
        (BEGINS, 9999.0, State.GOOD, "did not"),
        (9999.0, 9999.0, State.GOOD, "Neither"),
    ],
)
def test_which_came_first_is_told_to_a_step(refused_at: float, aged_at: float, state: State, words: str) -> None:
    changed = {"missed": 0.4, "missed_requests": 300.0, "interactive_refused": 6.0, "oldest_age": 0.9}
    begins = {"interactive_refused": refused_at, "oldest_age": aged_at}
    second = refusals_come_first(staged(changed, begins=begins))
    assert (second.state, words in second.sentences[0]) == (state, True), second


def test_latency_that_follows_bulk_is_told_with_its_interval() -> None:
    facts = staged({})
    bulk = facts.tracks["bulk_input"]
    waves = bulk.with_values(lambda value: value)
    restless = type(bulk)(
        bulk.start, bulk.step_seconds, tuple(v * (1 + (place // 8) % 5) for place, v in enumerate(waves.values))
    )
    later = (0.3, 0.3, *(0.0001 * value for value in restless.values[:-2]))
    ttft = type(bulk)(bulk.start, bulk.step_seconds, later)
    tracks = {**facts.tracks, "bulk_input": restless, "ttft_p95": ttft}
    third, _ = latency_against_bulk(Facts(tracks, facts.since, facts.until, {}), DRAW)
    assert third.state is State.WRONG
    assert "at a lag of 30 s" in third.sentences[0]
