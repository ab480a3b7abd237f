"""The raw samples of `llmshed calibrate`: a table that grows while it runs."""

import contextlib
import csv
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from llmshed.errors import OutputError

if TYPE_CHECKING:
    from llmshed.workload.asks import Sample

COLUMNS = (
    "ask",
    "phase",
    "level",
    "lane",
    "planned_seconds",
    "sent_seconds",
    "finished_seconds",
    "input_tokens",
    "ceiling_tokens",
    "output_tokens",
    "outcome",
    "status",
    "ttft_seconds",
    "tpot_seconds",
    "detail",
)


class SampleFile:
    """A CSV file with a line for each request; times are seconds since the run began.

    Args:
        path: where it is written.

    Raises:
        OutputError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = path.open("w", encoding="utf-8", newline="")
        except OSError as error:
            raise self._unwritable(error) from None
        self._rows = csv.writer(self._file)

    def __enter__(self) -> Self:
        """Write the names of the columns."""
        try:
            self._write(COLUMNS)
        except OutputError:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it; what was written stays, and what could not be was told where it failed."""
        self._close()

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()

    def write(self, sample: "Sample", phase: str, level: float, zero: float) -> None:
        """Append a request that ended while this level was held in this phase.

        Raises:
            OutputError: the file cannot take it.
        """
        ask = sample.ask
        times = (sample.planned_at - zero, sample.sent_at - zero, sample.finished_at - zero)
        waits = (sample.ttft_seconds, sample.tpot_seconds)
        self._write(
            (
                ask.id,
                phase,
                f"{level:.0f}",
                ask.lane or "",
                *(f"{time:.6f}" for time in times),
                ask.input_tokens,
                ask.ceiling_tokens,
                sample.output_tokens,
                sample.outcome.value,
                "" if sample.status is None else sample.status,
                *("" if wait is None else f"{wait:.6f}" for wait in waits),
                sample.detail,
            )
        )

    def _write(self, row: tuple[object, ...]) -> None:
        try:
            self._rows.writerow(row)
            self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> OutputError:
        return OutputError(f"{self._path}: cannot be written: {error.strerror}")
