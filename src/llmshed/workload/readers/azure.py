"""The Azure LLM inference traces of 2023: when, how many tokens in, how many out.

Source: Azure/AzurePublicDataset; Patel et al., Splitwise, ISCA 2024. Tenants, ceilings and prefixes are not told.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from llmshed.errors import TraceError
from llmshed.workload.readers.fields import token_count
from llmshed.workload.readers.lines import shown
from llmshed.workload.readers.reading import Elapsed, Reading
from llmshed.workload.readers.table import table_rows
from llmshed.workload.request import TracedRequest

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")

# The traces have 7 digits of a second, those of 2024 6 digits and a zone.
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-9]{2})?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_azure(chunks: Iterable[bytes], reading: Reading) -> Iterator[TracedRequest]:
    """Yield the requests of an Azure trace; the first arrives at 0.

    Raises:
        TraceError: a line is not of this trace, or arrivals go back.
    """
    elapsed = Elapsed()
    for line, (timestamp, context, generated) in table_rows(chunks, COLUMNS):
        at_seconds = elapsed.since_first(_nanoseconds(timestamp, line), line)
        input_tokens = token_count(context, "ContextTokens", line)
        length = reading.true_length(input_tokens, token_count(generated, "GeneratedTokens", line))
        if length is not None:
            yield TracedRequest(at_seconds, input_tokens, length[0], imputed=length[1])


def _nanoseconds(text: str, line: int) -> int:
    """Return nanoseconds since 1970; without a zone the time counts as UTC."""
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is not None:
        day, clock, fraction, zone = match.groups()
        offset = "+00:00" if zone in {None, "Z"} else zone
        with suppress(ValueError):  # the 31st of February, hour 25
            since = datetime.fromisoformat(f"{day}T{clock}{offset}") - _EPOCH
            return (since // timedelta(seconds=1)) * 1_000_000_000 + int((fraction or "0").ljust(9, "0"))
    raise TraceError(f"TIMESTAMP is {shown(text)}; a time as 2023-11-16 18:17:03.9799600 is accepted", line)
