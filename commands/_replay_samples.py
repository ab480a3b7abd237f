"""The times of every try of `llmshed replay`, as a table that grows while it runs."""

import contextlib
import csv
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from llmshed.errors import OutputError

if TYPE_CHECKING:
    from llmshed.loadtest.open_loop import Visit
    from llmshed.loadtest.replies import Reply

COLUMNS = (
    "request",
    "try",
    "planned_seconds",
    "sent_seconds",
    "finished_seconds",
    "lane",
    "input_tokens",
    "ceiling_tokens",
    "output_tokens",
    "outcome",
    "status",
    "reason",
    "ttft_seconds",
    "tpot_seconds",
    "longest_itl_seconds",
    "detail",
)


class SampleFile:
    """A CSV file with a line for each try; times are seconds after the start of the run.

    Args:
        path: where it is written.

    Raises:
        OutputError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = path.open("w", encoding="utf-8", newline="", buffering=1)
        except OSError as error:
            raise self._unwritable(error) from None
        self._rows = csv.writer(self._file)

    def __enter__(self) -> Self:
        """Write the header.

        Raises:
            OutputError: the file cannot take it.
        """
        try:
            self._put([COLUMNS])
        except OutputError:
            with contextlib.suppress(OSError):
                self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file; what was written stays.

        Raises:
            OutputError: the file cannot take the rest, and nothing else ended the run.
        """
        try:
            self._file.close()
        except OSError as failed:
            if error is None:
                raise self._unwritable(failed) from None

    def write(self, visit: "Visit", started_at: float) -> None:
        """Write the tries of a visit in a run that started then.

        Raises:
            OutputError: the file cannot take them.
        """
        self._put(_row(reply, started_at) for reply in visit.replies)

    def _put(self, rows: Iterable[Iterable[object]]) -> None:
        try:
            self._rows.writerows(rows)
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> OutputError:
        return OutputError(f"--samples {self._path}: cannot be written: {error.strerror}")


def _row(reply: "Reply", started_at: float) -> list[object]:
    sample = reply.sample
    ask = sample.ask
    times = (at - started_at for at in (sample.planned_at, sample.sent_at, sample.finished_at))
    waits = (sample.ttft_seconds, sample.tpot_seconds, max(sample.itl_seconds, default=None))
    return [
        ask.id,
        reply.tries,
        *(f"{time:.6f}" for time in times),
        reply.lane or "",
        ask.input_tokens,
        ask.ceiling_tokens,
        sample.output_tokens,
        sample.outcome.value,
        "" if sample.status is None else sample.status,
        reply.reason,
        *("" if wait is None else f"{wait:.6f}" for wait in waits),
        sample.detail,
    ]
