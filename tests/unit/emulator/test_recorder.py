"""The file of a recorded schedule, without a server."""

import io
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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
    assert file.cut == "No space left on device"


def test_a_schedule_that_was_cut_ends_as_what_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []

    class Small(io.BytesIO):
        """A disk with room for the first line."""

        def fileno(self) -> int:
            return devnull.fileno()

        def writelines(self, lines: Iterable[Any]) -> None:
            written.extend(lines)
            raise OSError(28, "No space left on device")

    with Path(os.devnull).open("wb") as devnull:
        monkeypatch.setattr(Path, "open", lambda *_: Small())
        with (
            pytest.raises(OutputError, match="is not whole: No space left on device") as caught,
            recorded_scheduler(tmp_path / "schedule.jsonl", PARAMETERS) as scheduler,
        ):
            scheduler.take_permit(1)
    assert written
    assert caught.value.exit_code is ExitCode.IO


def test_two_replicas_cannot_be_recorded_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "schedule.jsonl"
    with recorded_scheduler(path, PARAMETERS) as scheduler:
        scheduler.take_permit(1)
        with pytest.raises(OutputError, match="another replica is recorded there") as caught:
            ScheduleFile(path, PARAMETERS)
        scheduler.take_permit(2)
    assert caught.value.exit_code is ExitCode.IO
    with path.open("rb") as lines:
        assert len(read_schedule(lines).calls) == 3


def test_a_device_is_written_as_it_is() -> None:
    with recorded_scheduler(Path(os.devnull), PARAMETERS) as scheduler:
        assert scheduler.take_permit(1)
