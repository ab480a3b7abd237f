"""BurstGPT's columns, in both releases; rows as the trace's own page shows them."""

import pytest

from fakes.traces import read_text, seeded
from llmshed.errors import TraceError
from llmshed.workload.readers.burstgpt import read_burstgpt
from llmshed.workload.readers.reading import Reading

FIRST = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,ChatGPT,1087,230,1317,Conversation log
118,GPT-4,417,276,693,API log
1106,ChatGPT,0,0,0,Conversation log
1200,ChatGPT,500,0,500,API log
"""

SECOND = """Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
10.0,4,2.5,ChatGPT,100,20,120,Conversation log
11.0,,1.0,GPT-4,200,30,230,API log
12.5,4,3.5,ChatGPT,150,20,170,Conversation log
"""


def test_the_first_releases_are_read() -> None:
    reading = Reading(seeded())
    requests = read_text(read_burstgpt, FIRST, reading)
    assert [(one.at_seconds, one.input_tokens) for one in requests] == [(0, 472), (40, 1087), (113, 417), (1195, 500)]
    assert [one.true_output_tokens for one in requests[:3]] == [18, 230, 276]
    assert {one.session for one in requests} == {None}
    assert dict(reading.skipped) == {"no input tokens": 1}


def test_a_failure_stays_with_a_length_that_is_marked_as_guessed() -> None:
    requests = read_text(read_burstgpt, FIRST)
    assert [one.imputed for one in requests] == [False, False, False, True]
    # One of those seen before it, within the sketch's 1 %.
    assert any(requests[-1].true_output_tokens == pytest.approx(seen, rel=0.01) for seen in (18, 230, 276))


def test_the_second_release_tells_sessions() -> None:
    requests = read_text(read_burstgpt, SECOND)
    assert [(one.at_seconds, one.session) for one in requests] == [(0.0, "4"), (1.0, None), (2.5, "4")]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("472", "-472", "line 2: Request tokens is '-472'"),
        ("18,490", "x,490", "line 2: Response tokens is 'x'"),
        ("45,ChatGPT", "4,ChatGPT", "line 3: arrives 1 s before"),
        ("118,GPT-4", "noon,GPT-4", "line 4: Timestamp is 'noon'"),
        ("Log Type", "Log", "line 1: no column Log Type"),
    ],
)
def test_a_broken_row_is_told(old: str, new: str, told: str) -> None:
    with pytest.raises(TraceError, match=told):
        read_text(read_burstgpt, FIRST.replace(old, new, 1))
