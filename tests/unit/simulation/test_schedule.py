"""The lines of a recorded schedule: what they say, and what they do not."""

import orjson
import pytest

from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import Ended, StepKind, StepsEnded
from llmshed.simulation.schedule import Called, Stall, Submit, TakePermit, entry_line, hashed, header_line
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence


def test_the_header_tells_the_schema_and_every_parameter() -> None:
    header = orjson.loads(header_line(ReplicaParameters(kv_tokens=20_000)))
    assert (header["schema"], header["engine"]) == ("llmshed.schedule/1", "tgi")
    assert header["parameters"]["kv_tokens"] == 20_000
    assert header["parameters"]["step_times"]["step_seconds"] == 0.025
    assert "rules" not in header["parameters"]


def test_a_call_is_one_line_with_its_time_and_name() -> None:
    line = entry_line(Called(1.5, TakePermit(7, granted=True)))
    assert line.endswith(b"\n")
    assert orjson.loads(line) == {"at": 1.5, "call": "take_permit", "key": 7, "granted": True}


def test_a_submission_tells_the_whole_sequence() -> None:
    sequence = Sequence(3, 40, 100, None, NaturalEnd(9, FinishReason.STOP), PromptBlocks((1, 2), 16))
    line = orjson.loads(entry_line(Called(0.1, Submit(sequence, accepted=True))))
    assert line["sequence"]["natural_end"] == {"after_tokens": 9, "reason": "stop_sequence"}
    assert line["sequence"]["blocks"] == {"ids": [1, 2], "unit_tokens": 16}
    assert line["accepted"] is True


def test_a_stall_without_an_end_has_no_seconds() -> None:
    assert orjson.loads(entry_line(Called(2.0, Stall(None)))) == {"at": 2.0, "call": "stall", "seconds": None}


def test_a_result_is_one_line_with_its_name() -> None:
    ended = Ended(7, FinishReason.EOS, 12, 0.25, 0.5, 0.1 + 0.2)
    assert orjson.loads(entry_line(ended)) == {
        "result": "ended",
        "key": 7,
        "reason": "eos_token",
        "output_tokens": 12,
        "queued_at": 0.25,
        "started_at": 0.5,
        "at": 0.30000000000000004,
    }
    steps = StepsEnded(StepKind.DECODE, 1, 0.02, joined=0, join_reason=None, failed=False)
    assert orjson.loads(entry_line(steps))["kind"] == "decode"


@pytest.mark.parametrize("shared", [0, 1, 5, 9])
def test_hashed_prompts_share_what_they_shared(shared: int) -> None:
    common = tuple(range(100, 100 + shared))
    left = hashed(PromptBlocks((*common, 1, 7, 7), 1), b"secret").ids
    right = hashed(PromptBlocks((*common, 2, 7, 7), 1), b"secret").ids
    assert left[:shared] == right[:shared]
    assert not set(left[shared:]) & set(right[shared:])
    assert len(left) == shared + 3


def test_hashes_tell_neither_ids_nor_that_they_are_equal_and_depend_on_the_secret() -> None:
    prompt = PromptBlocks((5, 5, 5, 5), 512)
    once = hashed(prompt, b"secret")
    assert once.unit_tokens == 512
    assert len({*once.ids, 5}) == 5
    assert once == hashed(prompt, b"secret")
    assert not set(once.ids) & set(hashed(prompt, b"another").ids)
    assert all(0 <= number < 2**53 for number in once.ids)
