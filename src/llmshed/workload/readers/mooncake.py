"""The Mooncake traces: when, how many tokens in and out, and which prompts begin alike.

Source: kvcache-ai/Mooncake, FAST25-release. `hash_ids` has one id for each block of 512 prompt tokens; equal ids are
equal blocks after equal blocks. Arrivals stand at multiples of about 3 seconds.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from llmshed.errors import TraceError
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.workload.readers.fields import LAST_SECONDS, MOST_TOKENS
from llmshed.workload.readers.lines import numbered_lines, shown
from llmshed.workload.readers.reading import Elapsed, Reading
from llmshed.workload.readers.sessions import SessionFinder
from llmshed.workload.request import TracedRequest

BLOCK_TOKENS = 512
KEYS = ("timestamp", "input_length", "output_length")
_LARGEST_ID = 2**64 - 1


def read_mooncake(chunks: Iterable[bytes], reading: Reading) -> Iterator[TracedRequest]:
    """Yield the requests of a Mooncake trace; the first arrives at 0.

    Sessions are those of `SessionFinder`. A line without `hash_ids` gives a request without blocks or session.

    Raises:
        TraceError: a line is not of this trace, or arrivals go back.
    """
    elapsed, sessions = Elapsed(), SessionFinder()
    for line, text in numbered_lines(chunks):
        row = _object(text, line)
        at_seconds = elapsed.since_first(_nanoseconds(row, line), line)
        input_tokens, output_tokens = _tokens(row, "input_length", line), _tokens(row, "output_length", line)
        ids = _ids(row, input_tokens, line)
        length = reading.true_length(input_tokens, output_tokens)
        if length is None:
            continue
        yield TracedRequest(
            at_seconds,
            input_tokens,
            length[0],
            session=sessions.session(at_seconds, ids, input_tokens // BLOCK_TOKENS) if ids else None,
            blocks=PromptBlocks(ids, BLOCK_TOKENS) if ids else None,
            imputed=length[1],
        )


def _object(text: str, line: int) -> dict[str, Any]:
    try:
        row = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise TraceError(f"not JSON ({error}): {shown(text)}", line) from None
    if not isinstance(row, dict) or not all(key in row for key in KEYS):
        raise TraceError(f"not an object with {', '.join(KEYS)}: {shown(text)}", line)
    return row


def _nanoseconds(row: dict[str, Any], line: int) -> int:
    milliseconds = row["timestamp"]
    if type(milliseconds) not in {int, float} or not 0 <= milliseconds <= LAST_SECONDS * 1e3:
        raise TraceError(f"timestamp is {shown(milliseconds)}; milliseconds from 0 on are accepted", line)
    nanoseconds: int = round(milliseconds * 1_000_000)
    return nanoseconds


def _tokens(row: dict[str, Any], key: str, line: int) -> int:
    count = row[key]
    if type(count) is int and 0 <= count <= MOST_TOKENS:
        return int(count)
    raise TraceError(f"{key} is {shown(count)}; a whole number from 0 to {MOST_TOKENS} is accepted", line)


def _ids(row: dict[str, Any], input_tokens: int, line: int) -> tuple[int, ...]:
    ids = row.get("hash_ids", [])
    if not isinstance(ids, list) or not all(type(one) is int and 0 <= one <= _LARGEST_ID for one in ids):
        raise TraceError(f"hash_ids is {shown(ids)}; a list of whole numbers from 0 to 2^64 - 1 is accepted", line)
    blocks = -(-input_tokens // BLOCK_TOKENS)
    if len(ids) > blocks:
        raise TraceError(f"{len(ids)} hash_ids; {input_tokens} tokens have {blocks} blocks of {BLOCK_TOKENS}", line)
    return tuple(ids)
