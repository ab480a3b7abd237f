"""The course of an emulated replica in a file, as a schedule that can be replayed."""

import fcntl
import logging
import os
import secrets
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import BufferedWriter
from pathlib import Path
from queue import Empty, SimpleQueue

from llmshed.errors import OutputError
from llmshed.simulation.model import ReplicaModel
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.recording import RecordedModel
from llmshed.simulation.results import Result
from llmshed.simulation.schedule import Called, Submit, entry_line, hashed, header_line
from llmshed.simulation.scheduler import Scheduler

_log = logging.getLogger(__name__)

Entry = Called | Result


@contextmanager
def recorded_scheduler(path: Path, parameters: ReplicaParameters) -> Iterator[ReplicaModel]:
    """Give a scheduler whose course goes to a file, until the block ends; an existing file is replaced.

    The end waits for the disk: it belongs behind the event loop, once nothing uses the scheduler any more.

    Raises:
        OutputError: the file cannot be written; raised at the start, or at the end if it was cut on the way.
    """
    file = ScheduleFile(path, parameters)
    model = RecordedModel(Scheduler(parameters), file.tell)
    try:
        yield model
    finally:
        model.close()
        file.close()
    if file.cut is not None:
        raise OutputError(f"the schedule in {path} is not whole: {file.cut}")


class ScheduleFile:
    """Writes what happens to a file, from a thread of its own: the event loop hands it over and goes on.

    The file is locked while it is open, so that two replicas cannot write over each other.

    Token ids are hashed with a secret that is drawn here and kept nowhere. When the file cannot be written any more,
    that is logged once and the rest is let go; the replica runs on.
    """

    def __init__(self, path: Path, parameters: ReplicaParameters) -> None:
        """Replace the file at `path` by one that tells the parameters.

        Raises:
            OutputError: it cannot be written, or another replica writes it.
        """
        self._path = path
        self._secret = secrets.token_bytes(32)
        self._entries: SimpleQueue[Entry] = SimpleQueue()
        self.cut: str | None = None
        """Why the file is not whole; None while it is."""
        self._file = _begin(path, header_line(parameters))
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="schedule")

    def tell(self, entry: Entry) -> None:
        """Take one entry; it is written after those before it."""
        self._entries.put(entry)
        self._thread.submit(self._write)

    def close(self) -> None:
        """Write what is left and close the file; waits for the disk, so call it away from the event loop."""
        self._thread.shutdown()
        try:
            self._file.close()
        except OSError as error:
            self._tell_cut(error)

    def _write(self) -> None:
        lines = []
        try:
            while True:
                lines.append(self._line(self._entries.get_nowait()))
        except Empty:
            pass
        if not lines or self.cut is not None:
            return
        try:
            self._file.writelines(lines)
            self._file.flush()
        except OSError as error:
            self._tell_cut(error)

    def _line(self, entry: Entry) -> bytes:
        if isinstance(entry, Called) and isinstance(entry.call, Submit):
            sequence = entry.call.sequence
            if sequence.blocks is not None:
                unreadable = replace(sequence, blocks=hashed(sequence.blocks, self._secret))
                entry = Called(entry.at, Submit(unreadable, entry.call.accepted))
        return entry_line(entry)

    def _tell_cut(self, error: OSError) -> None:
        if self.cut is None:
            self.cut = error.strerror or str(error)
            _log.error("the schedule in %s is cut: %s", self._path, self.cut)


def _begin(path: Path, header: bytes) -> BufferedWriter:
    try:
        file = path.open("ab")  # what is there goes only once it is ours
    except (OSError, ValueError) as error:  # a null byte in the name is the latter
        raise OutputError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error
    try:
        _take(file)
        file.write(header)
        file.flush()
    except BlockingIOError:
        file.close()
        raise OutputError(f"cannot write {path}: another replica is recorded there") from None
    except OSError as error:
        with suppress(OSError):  # it tries once more to write what it could not
            file.close()
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
    return file


def _take(file: BufferedWriter) -> None:
    """Empty a file that nobody else writes.

    Raises:
        BlockingIOError: somebody does.
    """
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return  # a pipe or a device is handed on as it is
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:  # a file system without locks
        _log.debug("no lock on the schedule: %s", error)
    file.truncate(0)
