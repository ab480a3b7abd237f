"""The kinds of traces that are read: one table, which the command line, the documentation and the tests follow."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import orjson

from llmshed.errors import TraceError
from llmshed.workload.readers import arena, azure, burstgpt, decision_log, mooncake, prometheus, sanitized, servegen
from llmshed.workload.readers.lines import beginning, shown
from llmshed.workload.readers.reading import Reading
from llmshed.workload.readers.table import split_row
from llmshed.workload.request import TracedRequest


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """One kind of trace.

    Args:
        name: what an operator types.
        title: what it is, for help and documentation.
        begins: how its first line is recognised, in words.
        recognises: says whether a first line (stripped of its end and of a byte order mark) begins such a trace.
        reader: bytes to requests, in order of arrival; raises `TraceError` alone.
        companion: file-name ending of the first file and that of a second one beside it, for formats of two; its
            content goes into `Reading.companion`.
        tells_endings: whether it tells what became of each request, as a decision log does. An absent ceiling is
            then one that the client did not name, and no gap of the trace.
        needs_rate: whether `Reading.rate_per_second` must be given, since the bytes tell none; elsewhere it has no use.
    """

    name: str
    title: str
    begins: str
    recognises: Callable[[str], bool]
    reader: Callable[[Iterable[bytes], Reading], Iterator[TracedRequest]]
    companion: tuple[str, str] | None = None
    needs_rate: bool = False
    tells_endings: bool = False

    def read(self, chunks: Iterable[bytes], reading: Reading) -> Iterator[TracedRequest]:
        """Yield the requests of a trace lazily, in order of arrival, the first at about 0 seconds.

        Args:
            chunks: the unpacked bytes in pieces of any size.
            reading: generator, and what the format wants beside the bytes; takes what was skipped.

        Raises:
            TraceError: a line is broken, or the trace holds no request.
        """
        requests = self.reader(chunks, reading)
        first = next(requests, None)
        if first is None:
            raise TraceError(f"the trace holds no request{_skipped(reading)}")
        yield first
        yield from requests


def format_of(first_line: str) -> TraceFormat:
    """Return the format whose traces begin with such a line.

    Raises:
        TraceError: none does.
    """
    found = next((one for one in FORMATS if one.recognises(first_line)), None)
    if found is None:
        accepted = "; ".join(f"{one.name} ({one.begins})" for one in FORMATS)
        raise TraceError(f"begins with {shown(first_line)}, as no known trace does; accepted are {accepted}", 1)
    return found


def sniff(chunks: Iterable[bytes]) -> TraceFormat:
    """Return the format of a trace by its first line that is not blank.

    Args:
        chunks: the unpacked bytes; no more of them is taken than the first line needs.

    Raises:
        TraceError: no format begins so, or the trace is empty.
    """
    first_line = beginning(chunks)
    if not first_line:
        raise TraceError("the trace is empty")
    return format_of(first_line)


def format_named(name: str) -> TraceFormat:
    """Return the format of this name.

    Raises:
        TraceError: there is none.
    """
    found = next((one for one in FORMATS if one.name == name), None)
    if found is None:
        raise TraceError(f"no trace format {shown(name)}; accepted are {', '.join(one.name for one in FORMATS)}")
    return found


def _has_columns(columns: tuple[str, ...]) -> Callable[[str], bool]:
    def recognises(first_line: str) -> bool:
        try:
            header = {column.strip() for column in split_row(first_line, 1)}
        except TraceError:
            return False
        return header.issuperset(columns)

    return recognises


def _has_keys(keys: tuple[str, ...]) -> Callable[[str], bool]:
    def recognises(first_line: str) -> bool:
        try:
            row = orjson.loads(first_line)
        except orjson.JSONDecodeError:
            return False
        return isinstance(row, dict) and row.keys() >= set(keys)

    return recognises


def _is_of_schema(schema: str) -> Callable[[str], bool]:
    def recognises(first_line: str) -> bool:
        try:
            row = orjson.loads(first_line)
        except orjson.JSONDecodeError:
            return False
        return isinstance(row, dict) and row.get("schema") == schema

    return recognises


def _skipped(reading: Reading) -> str:
    told = ", ".join(f"{count} rows with {why}" for why, count in reading.skipped.items())
    return f"; skipped: {told}" if told else ""


FORMATS: tuple[TraceFormat, ...] = (
    TraceFormat(
        "azure",
        "Azure LLM inference traces (CSV)",
        f"columns {', '.join(azure.COLUMNS)}",
        _has_columns(azure.COLUMNS),
        azure.read_azure,
    ),
    TraceFormat(
        "mooncake",
        "Mooncake traces (JSON lines), with shared prefixes",
        f"a JSON object with {', '.join(mooncake.KEYS)}",
        _has_keys(mooncake.KEYS),
        mooncake.read_mooncake,
    ),
    TraceFormat(
        "arena",
        "chat.lmsys.org arrivals by tenant, with measured latencies (CSV)",
        f"columns {', '.join(arena.COLUMNS)}",
        _has_columns(arena.COLUMNS),
        arena.read_arena,
    ),
    TraceFormat(
        "burstgpt",
        "BurstGPT traces (CSV)",
        f"columns {', '.join(burstgpt.COLUMNS)}",
        _has_columns(burstgpt.COLUMNS),
        burstgpt.read_burstgpt,
    ),
    TraceFormat(
        "decisions",
        "llmshed's own decision log (JSON lines), with what became of each request",
        f'a JSON object with "schema":"{decision_log.SCHEMA}"',
        _is_of_schema(decision_log.SCHEMA),
        decision_log.read_decision_log,
        tells_endings=True,
    ),
    TraceFormat(
        "sanitized",
        "a decision log with only lengths, offsets, lanes and hashed tenants left (CSV)",
        f"columns {', '.join(sanitized.COLUMNS)}",
        _has_columns(sanitized.COLUMNS),
        sanitized.read_sanitized,
    ),
    TraceFormat(
        "servegen",
        "ServeGen's rates (CSV) with the lengths beside them (JSON)",
        f"columns {', '.join(servegen.COLUMNS)}",
        _has_columns(servegen.COLUMNS),
        servegen.read_servegen,
        companion=("_rates.csv", "_lengths.json"),
    ),
    TraceFormat(
        "prometheus",
        "length histograms of a scrape of /metrics, at a rate that is given",
        "# HELP or # TYPE",
        lambda first_line: first_line.startswith(("# HELP ", "# TYPE ")),
        prometheus.read_scrape,
        needs_rate=True,
    ),
    TraceFormat(
        "prometheus-range",
        "length histograms over time, as /api/v1/query_range answers (JSON)",
        '{"status":"success"',
        lambda first_line: first_line.replace(" ", "").startswith('{"status":"success"'),
        prometheus.read_range,
    ),
)
