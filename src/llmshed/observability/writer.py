"""Lines to a file or pipe from a thread of their own: a full or slow disk costs lines, never the event loop's time."""

import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

MAX_QUEUED_BYTES = 8_388_608
"""Most bytes that wait to be written; at a kilobyte a decision, some 8,000 requests."""

GATHER_SECONDS = 0.1
"""How long the thread lets lines gather after the first: waking it takes the interpreter from the event loop, which for
each line would cost a tenth of a request's time."""

_log = logging.getLogger(__name__)


class LineWriter:
    """Appends whole lines to a file, or to an open descriptor such as standard error.

    Lines that cannot be written are dropped, oldest kept, and told to `dropped` as a number, which is called from the
    caller's thread or the writer's. A line that was cut by a full disk is closed before the next one begins, so that
    it spoils no other.
    """

    def __init__(
        self,
        target: Path | int,
        dropped: Callable[[int], None],
        max_queued_bytes: int = MAX_QUEUED_BYTES,
    ) -> None:
        """Open a path at once.

        Raises:
            OSError: the path cannot be appended to.
        """
        self._path = target if isinstance(target, Path) else None
        self._descriptor = target if isinstance(target, int) else _open(target)
        self._dropped = dropped
        self._max_queued_bytes = max_queued_bytes
        self._lines: deque[bytes] = deque()
        self._queued_bytes = 0
        self._reopening = self._closing = self._writing = self._asleep = self._hurried = False
        self._torn = self._failing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="llmshed-lines", daemon=True)
        self._thread.start()
        atexit.register(self.close)  # the last lines before an unforeseen end are the ones that explain it

    def write(self, line: bytes) -> None:
        """Queue a line, which ends with its line feed; never waits for the disk and never raises."""
        with self._changed:
            fits = not self._closing and self._queued_bytes + len(line) <= self._max_queued_bytes
            if fits:
                self._lines.append(line)
                self._queued_bytes += len(line)
                if self._asleep:
                    self._asleep = False
                    self._changed.notify_all()
        if not fits:
            self._dropped(1)

    def reopen(self) -> None:
        """Open the path anew, after logrotate moved the file away; a descriptor stays as it is."""
        with self._changed:
            self._reopening = self._path is not None
            self._changed.notify_all()

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until all queued lines are written or dropped; False when that took too long."""
        with self._changed:
            self._hurried = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not (self._lines or self._writing), timeout_seconds)

    def close(self, timeout_seconds: float = 2.0) -> None:
        """Write what is queued, for at most `timeout_seconds`, and close the file; later lines are dropped."""
        atexit.unregister(self.close)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._is_called():
                    self._asleep = True
                    self._changed.wait_for(self._is_called)
                    self._asleep = False
                    self._changed.wait_for(lambda: self._hurried or self._reopening or self._closing, GATHER_SECONDS)
                self._hurried = False
                reopening, self._reopening = self._reopening, False
                lines, self._lines = self._lines, deque()
                self._queued_bytes = 0
                self._writing = bool(lines)
                ending = self._closing and not lines
            if ending:
                break
            if reopening:
                self._open_anew()
            if lines:
                self._append(b"".join(lines))
                with self._changed:
                    self._writing = False
                    self._changed.notify_all()
        if self._path is not None:
            os.close(self._descriptor)

    def _is_called(self) -> bool:
        return bool(self._lines) or self._reopening or self._closing

    def _append(self, lines: bytes) -> None:
        """Write all of `lines`, or drop their rest at the first error."""
        closing = b"\n" if self._torn else b""
        data = closing + lines
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            written = len(data) - len(rest)
            if written:
                self._torn = data[written - 1 : written] != b"\n"
            self._dropped(bytes(rest).count(b"\n") - (written < len(closing)))
            self._tell_failing(error)
        else:
            self._torn = False
            if self._failing:
                self._failing = False
                _log.warning("decision_log_recovered", extra={"path": str(self._path)})

    def _open_anew(self) -> None:
        if self._path is None:
            return
        try:
            descriptor = _open(self._path)
        except OSError as error:
            self._tell_failing(error)  # the old file stays open: better there than nowhere
            return
        os.close(self._descriptor)
        self._descriptor = descriptor
        self._torn = False

    def _tell_failing(self, error: OSError) -> None:
        """Log the first error of a row; a descriptor is where the log itself goes, so there is nobody to tell."""
        if not self._failing and self._path is not None:
            self._failing = True
            _log.error("decision_log_failing", extra={"path": str(self._path), "error": error.strerror})


def _open(path: Path) -> int:
    """Open for appending; a pipe without a reader is an error instead of a wait."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o640)
