"""The file of a recorded schedule, without a server."""

import logging
import os
from pathlib import Path

import orjson
import pytest

from llmshed.emulator.recorder import ScheduleFile, recorded_scheduler
from llmshed.errors import ExitCode, OutputError
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.replaying import read_schedule, replay
from llmshed.simulation.schedule import Called, Leave
from llmshed.simulation.sequences import Sequence

PARAMETERS = ReplicaParameters(prefix_caching=True)


def test_the_file_is_whole_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "schedule.jsonl"
    path.write_text("what was there before\n")
    with recorded_scheduler(path, PARAMETERS) as scheduler:
        for key in range(1, 201):
            scheduler.take_permit(key)
            scheduler.submit(Sequence(key, 10, 4, blocks=PromptBlocks(tuple(range(10)), 1)), key * 1.0)
            results = scheduler.advance(key * 1.0 + 0.9)
            assert results
    with path.open("rb") as lines:
        schedule = read_schedule(lines)
    assert schedule.parameters == PARAMETERS
    assert len(schedule.calls) == 401
    assert tuple(replay(schedule)) == schedule.results


def test_each_file_has_its_own_secret(tmp_path: Path) -> None:
    seen = []
    for name in ("one", "two"):
        with recorded_scheduler(tmp_path / name, PARAMETERS) as scheduler:
            scheduler.take_permit(1)
            scheduler.submit(Sequence(1, 2, 4, blocks=PromptBlocks((5, 6), 1)), 0.0)
        line = (tmp_path / name).read_bytes().splitlines()[2]
        seen += orjson.loads(line)["sequence"]["blocks"]["ids"]
    assert len({*seen, 5, 6}) == 6


@pytest.mark.parametrize("place", ["", "absent/schedule.jsonl", "zero\0byte"])
def test_a_file_that_cannot_be_written_is_told_at_the_start(tmp_path: Path, place: str) -> None:
    path = tmp_path / place
    with pytest.raises(OutputError, match="cannot write ") as caught:
        ScheduleFile(path, PARAMETERS)
    assert caught.value.exit_code is ExitCode.IO


def test_a_disk_that_is_full_already_is_told_at_the_start() -> None:
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("/dev/full is what a full disk is tried with")
    with pytest.raises(OutputError, match="No space left on device"):
        ScheduleFile(Path("/dev/full"), PARAMETERS)


def test_a_disk_that_fills_up_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = ScheduleFile(tmp_path / "schedule.jsonl", PARAMETERS)

    class Full:
        def writelines(self, lines: list[bytes]) -> None:
            del lines
            raise OSError(28, "No space left on device")

        def close(self) -> None:
            opened.close()

    opened = file._file
    monkeypatch.setattr(file, "_file", Full())
    with caplog.at_level(logging.ERROR):
        for key in range(50):
            file.tell(Called(1.0, Leave(key)))
        file.close()
    (record,) = caplog.records
    assert record.getMessage().endswith("schedule.jsonl is cut: No space left on device")
