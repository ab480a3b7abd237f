"""The arena trace: 27 tenants' requests, and what a real engine on a real GPU made of them.

Source: Ying1123/VTC-artifact, chat.lmsys.org arrivals replayed on S-LoRA with Llama-2-7b on one A10G, first come first
served, overloaded. The latencies are measured; a simulated replica is held against them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from llmshed.workload.readers.fields import name, seconds, token_count
from llmshed.workload.readers.reading import Elapsed, Reading
from llmshed.workload.readers.table import table_rows
from llmshed.workload.request import TracedRequest

COLUMNS = ("arrival_s", "tenant", "prompt_len", "output_len")
MEASURED_COLUMNS = ("first_token_latency_s", "request_latency_s")


@dataclass(frozen=True, slots=True)
class MeasuredRequest:
    """A request and how long a real engine took for it.

    Args:
        request: what was sent.
        first_token_seconds: arrival to first token; None when the trace does not hold it.
        whole_seconds: arrival to last token; None likewise.
    """

    request: TracedRequest
    first_token_seconds: float | None
    whole_seconds: float | None


def read_arena(chunks: Iterable[bytes], reading: Reading) -> Iterator[TracedRequest]:
    """Yield the requests of an arena trace; the first arrives at 0.

    Raises:
        TraceError: a line is not of this trace, or arrivals go back.
    """
    return (measured.request for measured in read_measured(chunks, reading))


def read_measured(chunks: Iterable[bytes], reading: Reading) -> Iterator[MeasuredRequest]:
    """Yield the requests of an arena trace together with their measured latencies.

    Raises:
        TraceError: as `read_arena`.
    """
    elapsed = Elapsed()
    for line, fields in table_rows(chunks, COLUMNS, MEASURED_COLUMNS):
        arrival, tenant, prompt, output, first, whole = fields
        at_seconds = elapsed.since_first(round(seconds(arrival, "arrival_s", line) * 1e9), line)
        input_tokens = token_count(prompt, "prompt_len", line)
        length = reading.true_length(input_tokens, token_count(output, "output_len", line))
        if length is None:
            continue
        asker = name(tenant, "tenant", line)
        yield MeasuredRequest(
            TracedRequest(at_seconds, input_tokens, length[0], tenant=asker, imputed=length[1]),
            seconds(first, "first_token_latency_s", line) if first.strip() else None,
            seconds(whole, "request_latency_s", line) if whole.strip() else None,
        )
