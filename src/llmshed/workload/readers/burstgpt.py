"""The BurstGPT traces: a campus' ChatGPT and GPT-4 traffic, failures included.

Source: HPMLL/BurstGPT (Wang et al., arXiv 2401.17644). Releases 1 have whole seconds and no sessions; release 2 adds
`Session ID` (conversations only) and `Elapsed time` (submission to last token, which is no TTFT and is not used). Rows
of 0 response tokens are failures; the trace keeps them and so does the reader, with a length that is guessed.
"""

from collections.abc import Iterable, Iterator

from llmshed.workload.readers.fields import name, seconds, token_count
from llmshed.workload.readers.reading import Elapsed, Reading
from llmshed.workload.readers.table import table_rows
from llmshed.workload.request import TracedRequest

COLUMNS = ("Timestamp", "Model", "Request tokens", "Response tokens", "Total tokens", "Log Type")


def read_burstgpt(chunks: Iterable[bytes], reading: Reading) -> Iterator[TracedRequest]:
    """Yield the requests of a BurstGPT trace, of both models; the first arrives at 0.

    Raises:
        TraceError: a line is not of this trace, or arrivals go back.
    """
    elapsed = Elapsed()
    for line, fields in table_rows(chunks, COLUMNS, ("Session ID",)):
        timestamp, _, asked, answered, _, _, session = fields
        at_seconds = elapsed.since_first(round(seconds(timestamp, "Timestamp", line) * 1e9), line)
        input_tokens = token_count(asked, "Request tokens", line)
        length = reading.true_length(input_tokens, token_count(answered, "Response tokens", line))
        if length is not None:
            conversation = name(session, "Session ID", line) if session.strip() else None
            yield TracedRequest(at_seconds, input_tokens, length[0], session=conversation, imputed=length[1])
