"""A journal tells the events that were written, and what of a file is none."""

from pathlib import Path

import pytest

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.calibration.events import Answered, Begun, Event, FirstToken, Read, Woken
from llmshed.errors import OutputError
from llmshed.loadtest.journal import Journal, JournalError, read_journal
from llmshed.workload.asks import Ask, Outcome, Sample

ASK = Ask("mix/1", 512, 128, runs_to_ceiling=True, lane="interactive", prefix_tokens=16, prefix_group=2)
EVENTS: tuple[Event, ...] = (
    Begun(None),
    Begun(ReplicaReading(1.0, 0.0, None, 3.0)),
    FirstToken("mix/1"),
    Answered(Sample(ASK, 0.1, 0.2, (0.30000000000000004, 0.5), 0.6, Outcome.FINISHED, 200, 2)),
    Answered(Sample(ASK, 0.1, 0.1, (), 0.6, Outcome.FAILED, None, 0, "connection lost")),
    Read(ReplicaReading(7.0, 1.0, 0.25, None)),
    Woken(),
)


def written(path: Path) -> bytes:
    with Journal(path, {"seed": 7}) as journal:
        for now, event in enumerate(EVENTS):
            journal.write(event, now + 0.1)
    return path.read_bytes()


def test_every_event_is_read_as_it_was_written(tmp_path: Path) -> None:
    header, entries = read_journal(written(tmp_path / "run.jsonl"))
    assert header == {"schema": "llmshed.calibration/1", "seed": 7}
    assert [entry.event for entry in entries] == list(EVENTS)
    assert [entry.now for entry in entries] == [now + 0.1 for now in range(len(EVENTS))]


def test_a_journal_goes_on_from_where_it_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    _, entries = read_journal(written(path))
    with Journal(path, None, entries[2].ends_at) as journal:
        journal.write(Woken(), 9.0)
    assert [entry.event for entry in read_journal(path.read_bytes())[1]] == [*EVENTS[:3], Woken()]


def test_a_last_line_that_broke_off_is_left_out(tmp_path: Path) -> None:
    content = written(tmp_path / "run.jsonl")
    assert len(read_journal(content[:-2])[1]) == len(EVENTS) - 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[budget]\n",
        b"{}\n",
        b"\x7fELF\x02\x01\x01\x00\n\xff\xd8\n",
        b'{"schema":"llmshed.calibration/2"}\n',
        b'{"schema":"llmshed.calibration/1"}\n{"now":1}\n',
        b'{"schema":"llmshed.calibration/1"}\n{"now":1,"event":"slept"}\n',
        b'{"schema":"llmshed.calibration/1"}\n{"now":1,"event":"answered","sample":{"ask":{}}}\n',
    ],
)
def test_another_file_is_no_journal(content: bytes) -> None:
    with pytest.raises(JournalError, match="this is no journal of a calibration"):
        read_journal(content)


def test_what_is_told_of_another_file_are_words_of_ours() -> None:
    with pytest.raises(JournalError) as binary:
        read_journal(b"\x7fELF\xff\n")
    assert str(binary.value) == "this is no journal of a calibration (llmshed.calibration/1)"
    with pytest.raises(JournalError) as torn:
        read_journal(b'{"schema":"llmshed.calibration/1"}\n{"now":1,"event":"woken"}\n\xff\n')
    assert str(torn.value) == "this is no journal of a calibration: line 3 is none of its events"


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    full = tmp_path / "run.jsonl"
    full.symlink_to("/dev/full")
    with pytest.raises(OutputError, match=r"run\.jsonl: cannot be written: No space left on device"):
        Journal(full, {}).__enter__()
    with pytest.raises(OutputError, match="No such file or directory"):
        Journal(tmp_path / "absent" / "run.jsonl", {})
