"""Reading a schedule back, and what is refused in one."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import orjson
import pytest

from llmshed.errors import TraceError
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.recording import RecordedModel
from llmshed.simulation.replaying import read_schedule, replay
from llmshed.simulation.schedule import Called, entry_line, header_line
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence

if TYPE_CHECKING:
    from llmshed.simulation.results import Result

PARAMETERS = ReplicaParameters(prefix_caching=True, kv_tokens=9_000)
HEADER = header_line(PARAMETERS)


def recorded(course: Callable[[RecordedModel], None], parameters: ReplicaParameters = PARAMETERS) -> list[bytes]:
    told: list[Called | Result] = []
    model = RecordedModel(Scheduler(parameters), told.append)
    course(model)
    model.close()
    return [header_line(parameters), *map(entry_line, told)]


def two_sequences(model: RecordedModel) -> None:
    for key, now in ((1, 0.3), (2, 0.7)):
        model.advance(now)
        model.take_permit(key)
        model.submit(Sequence(key, 900, 50, None, NaturalEnd(20, FinishReason.EOS)), now)
    model.advance(1.1)
    model.leave(2)
    model.advance(9.0)


def test_a_replay_gives_what_was_recorded_to_the_last_bit() -> None:
    schedule = read_schedule(recorded(two_sequences))
    assert schedule.parameters == PARAMETERS
    assert tuple(replay(schedule)) == schedule.results
    assert len(schedule.results) > 4


def test_lines_may_be_text_or_bytes() -> None:
    lines = recorded(two_sequences)
    assert read_schedule(line.decode() for line in lines) == read_schedule(lines)


def test_a_recording_that_was_cut_is_replayed_to_its_last_call() -> None:
    lines = [line for line in recorded(two_sequences) if b'"close"' not in line]
    schedule = read_schedule(lines)
    results = tuple(replay(schedule))
    assert results == schedule.results[: len(results)]
    assert 0 < len(results) < len(schedule.results)


def test_another_outcome_than_recorded_is_told() -> None:
    def crowd(model: RecordedModel) -> None:
        assert [model.take_permit(key) for key in (1, 2)] == [True, False]

    lines = recorded(crowd, ReplicaParameters(max_concurrent_requests=1))
    lines[0] = header_line(ReplicaParameters(max_concurrent_requests=2))
    with pytest.raises(TraceError, match="the permit of sequence 2 was refused when recorded, and is granted"):
        list(replay(read_schedule(lines)))


def test_another_verdict_on_the_limits_is_told() -> None:
    lines = recorded(two_sequences)
    lines[0] = header_line(ReplicaParameters(max_input_tokens=100))
    with pytest.raises(TraceError, match="the submission of sequence 1 was granted when recorded, and is refused"):
        list(replay(read_schedule(lines)))


def test_a_recording_that_was_killed_in_a_line_is_read_without_it() -> None:
    lines = recorded(two_sequences)
    whole = read_schedule(lines[:-1])
    cut = [*lines[:-1], lines[-1][:5]]
    with pytest.raises(TraceError, match=f"line {len(lines)}: not JSON: .* the recording was cut: leave it out"):
        read_schedule(cut)
    again = tuple(replay(read_schedule(cut[:-1])))
    assert again
    assert again == whole.results[: len(again)]


def call(at: object, name: str, **fields: object) -> bytes:
    return orjson.dumps({"at": at, "call": name, **fields})


PERMIT = call(1.0, "take_permit", key=1, granted=True)
SUBMIT = call(1.0, "submit", sequence={"key": 1, "input_tokens": 5}, accepted=True)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "the schedule is empty; a first line with the schema llmshed.schedule/1 is needed"),
        ([b"{"], "line 1: not JSON"),
        ([b"[1]"], "line 1: not a JSON object"),
        (
            [b'{"schema": "llmshed.decision/1"}'],
            "line 1: schema is 'llmshed.decision/1'; accepted is 'llmshed.schedule",
        ),
        ([b'{"schema": "llmshed.schedule/1", "engine": "vllm"}'], "line 1: engine is 'vllm'; accepted is 'tgi'"),
        ([b'{"schema": "llmshed.schedule/1", "engine": "tgi"}'], "line 1: "),
        ([header_line(PARAMETERS).replace(b"9000", b"90")], "line 1: Value error, max_total_tokens 8192 does not fit"),
        ([header_line(PARAMETERS).replace(b"kv_tokens", b"kv_token")], "line 1: kv_token is not known here"),
        ([HEADER, call(1.0, "dance")], "line 2: call is 'dance'; accepted are take_permit, submit, leave, fail"),
        ([HEADER, call(None, "resume")], "line 2: at is None; a number of seconds is needed"),
        ([HEADER, b'{"at": true, "call": "resume"}'], "line 2: at is True; a number of seconds is needed"),
        ([HEADER, call(1.0, "leave")], "line 2: key: Field required"),
        ([HEADER, call(1.0, "leave", key=1, keys=2)], "line 2: keys is not known here"),
        ([HEADER, PERMIT, PERMIT], "line 3: sequence 1 asks for a permit twice"),
        ([HEADER, SUBMIT], "line 2: sequence 1 is submitted without a permit"),
        ([HEADER, PERMIT, SUBMIT, SUBMIT], "line 4: sequence 1 is submitted without a permit"),
        ([HEADER, PERMIT, call(1.0, "leave", key=1), SUBMIT], "line 4: sequence 1 is submitted without a permit"),
        ([HEADER, PERMIT, call(0.5, "resume")], "line 3: at 0.5 is before the call above it, at 1.0"),
        ([HEADER, call(1, "close"), call(1, "resume")], "line 3: a call follows the line that closes the schedule"),
        ([HEADER, b'{"result": "sung"}'], "line 2: result is 'sung'; accepted are first_token, steps_ended"),
        ([HEADER, b"{}"], "line 2: result is None; accepted are"),
        ([HEADER, b'{"result": "first_token", "key": 1, "at": "soon"}'], "line 2: at: Input should be a valid number"),
    ],
)
def test_what_is_no_schedule_is_refused_with_its_line(lines: list[bytes], problem: str) -> None:
    with pytest.raises(TraceError) as caught:
        read_schedule(lines)
    assert str(caught.value).startswith(problem)
