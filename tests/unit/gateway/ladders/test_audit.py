"""The lines of the audit: documented, whole or absent, and read from the end."""

import errno
import json
import os
import re
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from llmshed.gateway.ladders.audit import AuditEntry, append_lines, last_records

PAGE = Path(__file__).resolve().parents[4] / "docs" / "ladder.md"
ENTRY = AuditEntry(
    1_796_100_000.25, "trigger", "main", "own@1", "abc", rung="stop-bulk", reason="why", for_seconds=60.0
)


def record(number: int) -> dict[str, object]:
    return ENTRY.record() | {"before": number}


def test_every_field_is_explained() -> None:
    section = PAGE.read_text("utf-8").partition("A line of the audit")[2].partition("## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, flags=re.MULTILINE)
    assert {field for row in rows for field in re.findall(r"`(\w+)`", row)} == set(ENTRY.record()) - {"schema"}


def test_the_time_is_told_twice() -> None:
    assert ENTRY.record()["time"] == "2026-12-01T04:40:00.250Z"


def test_what_is_appended_is_read_back_oldest_first(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    append_lines(file, [record(1), record(2)], on_disk=False)
    append_lines(file, [record(3)], on_disk=True)

    assert [one["before"] for one in last_records(file, 10)] == [1, 2, 3]
    assert [one["before"] for one in last_records(file, 2)] == [2, 3]


def test_only_the_end_of_a_long_file_is_read_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    file.write_text("x" * 700_000 + "\n[1]\n{}\n")
    append_lines(file, [record(1)], on_disk=False)
    assert last_records(file, 5) == [record(1)]


def test_what_was_cut_off_takes_no_later_line_with_it(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    file.write_bytes(b'{"schema":"llmshed.audit/1","ti')
    append_lines(file, [record(1)], on_disk=True)
    append_lines(file, [record(2)], on_disk=False)
    assert last_records(file, 5) == [record(1), record(2)]
    assert file.read_bytes().count(b"\n") == 3


def test_lines_without_the_fields_of_one_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    file.write_text('{"schema":"llmshed.audit/1","what":"step"}\n')
    append_lines(file, [record(1)], on_disk=False)
    assert last_records(file, 5) == [record(1)]


def test_a_new_file_whose_name_does_not_reach_the_disk_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, real = tmp_path / "audit.jsonl", os.fsync
    monkeypatch.setattr(os, "fsync", partial(unless_folder, real))
    with pytest.raises(OSError, match="Input/output"):
        append_lines(file, [record(1)], on_disk=True)
    assert file.read_bytes() == b""


def unless_folder(real: Callable[[int], None], opened: int) -> None:
    """Sync a file; of a folder, say that the disk failed."""
    if stat.S_ISDIR(os.fstat(opened).st_mode):
        raise OSError(errno.EIO, "Input/output error")
    real(opened)


def test_a_file_that_is_not_there_has_no_records(tmp_path: Path) -> None:
    assert last_records(tmp_path / "audit.jsonl", 5) == []


def test_what_is_no_file_is_refused() -> None:
    for refused in (
        lambda: append_lines(Path("/dev/null"), [record(1)], on_disk=False),
        lambda: last_records(Path("/dev/null"), 1),
    ):
        with pytest.raises(OSError, match="no regular file"):
            refused()


def test_a_line_of_any_reason_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    append_lines(file, [ENTRY.record() | {"reason": 'a\nb\u2028"}'}], on_disk=False)
    (line,) = file.read_bytes().split(b"\n")[:-1]
    assert json.loads(line)["reason"] == 'a\nb\u2028"}'
