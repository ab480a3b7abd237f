"""A decision log with nothing left in it but lengths, offsets, lanes and salted tenants (`llmshed replay --sanitize`).

Each line stands for a request with all its tries. An output length that nobody saw, since nothing was served, is 0 and
made up from those of like requests.
"""

from collections.abc import Iterable, Iterator

from llmshed.errors import TraceError
from llmshed.workload.readers.fields import name, seconds, token_count
from llmshed.workload.readers.histograms import INTENTS
from llmshed.workload.readers.lines import shown
from llmshed.workload.readers.reading import Elapsed, Reading
from llmshed.workload.readers.table import table_rows
from llmshed.workload.request import TracedRequest

COLUMNS = (
    "at_seconds",
    "lane",
    "tenant",
    "input_tokens",
    "asked_output_tokens",
    "output_tokens",
    "sequences",
)
_MOST_SEQUENCES = 1_000_000


def read_sanitized(chunks: Iterable[bytes], reading: Reading) -> Iterator[TracedRequest]:
    """Yield the requests of a sanitized log; the first arrives at 0.

    Raises:
        TraceError: a line is not of such a log, or arrivals go back.
    """
    elapsed = Elapsed()
    for line, (at, lane, tenant, input_text, asked, output, sequences) in table_rows(chunks, COLUMNS):
        at_seconds = elapsed.since_first(round(seconds(at, "at_seconds", line) * 1e9), line)
        input_tokens = token_count(input_text, "input_tokens", line)
        length = reading.true_length(input_tokens, token_count(output, "output_tokens", line))
        if length is None:
            continue
        yield TracedRequest(
            at_seconds,
            input_tokens,
            length[0],
            asked_output_tokens=token_count(asked, "asked_output_tokens", line) if asked else None,
            tenant=name(tenant, "tenant", line),
            intent=INTENTS.get(lane),
            copies=_sequences(sequences, line),
            imputed=length[1],
        )


def _sequences(text: str, line: int) -> int:
    count = token_count(text, "sequences", line)
    if not 1 <= count <= _MOST_SEQUENCES:
        raise TraceError(f"sequences is {shown(text)}; a whole number from 1 to {_MOST_SEQUENCES} is accepted", line)
    return count
