"""Lines reach the disk, or are dropped and counted; nobody waits for them."""

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llmshed.observability.writer import LineWriter


class Drops:
    """Counts dropped lines."""

    def __init__(self) -> None:
        self.lines = 0

    def __call__(self, lines: int) -> None:
        self.lines += lines


@pytest.fixture
def drops() -> Drops:
    return Drops()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "decisions.jsonl"


@pytest.fixture
def writer(path: Path, drops: Drops) -> Iterator[LineWriter]:
    made = LineWriter(path, drops, max_queued_bytes=100)
    yield made
    made.close()


def test_lines_of_one_moment_are_written_together(
    path: Path, writer: LineWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[bytes] = []
    write_now = os.write

    def counted(descriptor: int, data: Any) -> int:
        writes.append(bytes(data))
        return write_now(descriptor, data)

    monkeypatch.setattr("llmshed.observability.writer.GATHER_SECONDS", 30.0)
    monkeypatch.setattr("llmshed.observability.writer.os.write", counted)
    for number in range(5):
        writer.write(b"line %d\n" % number)
    assert writer.flush(5)
    assert writes == [b"line 0\nline 1\nline 2\nline 3\nline 4\n"]
    assert path.read_bytes() == writes[0]


def test_lines_are_appended_in_order_to_what_the_file_held(path: Path, writer: LineWriter, drops: Drops) -> None:
    path.write_bytes(b"old\n")
    for number in range(5):
        writer.write(b"line %d\n" % number)
    assert writer.flush(5)
    assert path.read_bytes() == b"old\nline 0\nline 1\nline 2\nline 3\nline 4\n"
    assert drops.lines == 0


def test_the_file_is_not_readable_by_everyone(path: Path, writer: LineWriter) -> None:
    del writer
    assert path.stat().st_mode & 0o007 == 0


def test_a_stalled_disk_costs_lines_and_never_a_wait(
    path: Path, writer: LineWriter, drops: Drops, monkeypatch: pytest.MonkeyPatch
) -> None:
    stalled, released = threading.Event(), threading.Event()
    real_write = os.write

    def slow_write(descriptor: int, data: Any) -> int:
        stalled.set()
        assert released.wait(10)
        return real_write(descriptor, data)

    monkeypatch.setattr(os, "write", slow_write)
    writer.write(b"first\n")
    assert stalled.wait(10)
    for _ in range(50):
        writer.write(b"0123456789\n")  # 9 of 11 bytes fit into the 100
    assert drops.lines == 41
    released.set()
    assert writer.flush(5)
    assert path.read_bytes() == b"first\n" + 9 * b"0123456789\n"


def test_a_full_disk_drops_whole_lines_and_the_torn_one_spoils_no_other(
    path: Path, writer: LineWriter, drops: Drops, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real_write = os.write
    room = 4

    def full(descriptor: int, data: Any) -> int:
        nonlocal room
        if room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = real_write(descriptor, bytes(data[:room]))
        room -= written
        return written

    monkeypatch.setattr(os, "write", full)
    writer.write(b"torn line\n")
    assert writer.flush(5)
    writer.write(b"lost line\n")
    assert writer.flush(5)
    monkeypatch.setattr(os, "write", real_write)
    writer.write(b"whole line\n")
    assert writer.flush(5)
    assert path.read_bytes() == b"torn\nwhole line\n"
    assert drops.lines == 2
    assert [record.message for record in caplog.records] == ["decision_log_failing", "decision_log_recovered"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_device_that_is_always_full_is_no_crash(drops: Drops) -> None:
    writer = LineWriter(Path("/dev/full"), drops)
    for _ in range(3):
        writer.write(b"line\n")
        assert writer.flush(5)
    writer.close()
    assert drops.lines == 3


def test_reopening_follows_logrotate(path: Path, writer: LineWriter) -> None:
    writer.write(b"before\n")
    assert writer.flush(5)
    rotated = path.with_suffix(".1")
    path.rename(rotated)
    writer.reopen()
    writer.write(b"after\n")
    assert writer.flush(5)
    assert (rotated.read_bytes(), path.read_bytes()) == (b"before\n", b"after\n")


def test_a_reopening_that_fails_keeps_the_old_file(
    path: Path, writer: LineWriter, caplog: pytest.LogCaptureFixture
) -> None:
    rotated = path.with_suffix(".1")
    path.rename(rotated)
    path.mkdir()
    writer.reopen()
    writer.write(b"kept\n")
    assert writer.flush(5)
    assert rotated.read_bytes() == b"kept\n"
    assert caplog.records[0].message == "decision_log_failing"


def test_closing_writes_what_waits_and_drops_what_comes_later(path: Path, drops: Drops) -> None:
    writer = LineWriter(path, drops)
    for _ in range(100):
        writer.write(b"line\n")
    writer.close()
    writer.write(b"late\n")
    assert path.read_bytes() == 100 * b"line\n"
    assert drops.lines == 1


def test_lines_before_an_unforeseen_end_of_the_process_are_written(path: Path) -> None:
    program = (
        "import pathlib, sys; from llmshed.observability.writer import LineWriter;"
        "writer = LineWriter(pathlib.Path(sys.argv[1]), print);"
        "[writer.write(b'line\\n') for _ in range(1000)]; 1 / 0"
    )
    ended = subprocess.run([sys.executable, "-c", program, path], capture_output=True, check=False)
    assert b"ZeroDivisionError" in ended.stderr
    assert path.read_bytes() == 1000 * b"line\n"


def test_a_pipe_whose_reader_left_is_no_crash(drops: Drops) -> None:
    reader, descriptor = os.pipe()
    os.close(reader)
    writer = LineWriter(descriptor, drops)
    writer.write(b"line\n")
    assert writer.flush(5)
    writer.close()
    os.close(descriptor)
    assert drops.lines == 1


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), os.mkfifo], ids=["directory", "fifo without a reader"])
def test_what_cannot_be_appended_to_is_an_error_at_once(path: Path, drops: Drops, make: Any) -> None:
    make(path)
    with pytest.raises(OSError, match=r"directory|No such device"):
        LineWriter(path, drops)
