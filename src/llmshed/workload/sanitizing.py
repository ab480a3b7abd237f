"""A decision log without anything that tells who or what: what is kept, and the proof that nothing else is.

Kept of each request are its offset, lane, lengths, number of sequences, and its tenant as a keyed hash, so that tenants
can be told apart and nothing more. The key is drawn for each file and thrown away: names cannot be tried.

The proof reads what was written, without trusting the writer. Every cell must be of its column's form: a number, a lane
or a hash. Since numbers hold no text, a string of the log can only be in what is left, the distinct lanes and hashes;
so each string of each line is looked for there. Strings of fewer than `LEAST_FOUND_CHARACTERS` are compared with whole
cells, as they would be found in a hash by chance.
"""

import hmac
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from llmshed.admission.request import Lane
from llmshed.errors import TraceError
from llmshed.workload.folding import RetryFolder
from llmshed.workload.logged import LoggedEnding, LoggedRequest
from llmshed.workload.readers.lines import numbered_lines, shown
from llmshed.workload.readers.sanitized import COLUMNS

KEY_BYTES = 32
LEAST_FOUND_CHARACTERS = 8
ALLOWED_STRINGS = frozenset(lane.value for lane in Lane)
"""Words of the log that the output holds on purpose."""
_NO_TENANT = "none"
_NUMBER = r"[0-9]+(?:\.[0-9]{1,6})?"
_ROW = re.compile(
    rf"{_NUMBER},(?P<lane>{'|'.join(sorted(ALLOWED_STRINGS))}),(?P<tenant>t[0-9a-f]{{16}}),[0-9]+,[0-9]*,[0-9]+,[0-9]+",
    re.ASCII,
)
_TOLD = frozenset({LoggedEnding.FINISHED, LoggedEnding.CANCELLED})
"""Endings whose output length is that of the answer; that of others was cut by something else than the model."""


def sanitized(tries: Iterable[LoggedRequest], key: bytes) -> Iterator[str]:
    """Yield the lines of a log with nothing left but what is kept, the header first; retries are folded.

    Args:
        tries: every try of the log, in order of arrival.
        key: `KEY_BYTES` secret bytes.
    """
    yield ",".join(COLUMNS)
    first_at: float | None = None
    for request in RetryFolder().first_tries(tries):
        first_at = request.time_seconds if first_at is None else first_at
        output_tokens = request.output_tokens_each if request.ending in _TOLD else 0
        asked = "" if request.asked_output_tokens is None else request.asked_output_tokens
        at = f"{max(0.0, request.time_seconds - first_at):.6f}"
        tenant = _hash(request.tenant or _NO_TENANT, key)
        lengths = f"{request.input_tokens_each},{asked},{output_tokens},{request.sequences}"
        yield f"{at},{request.lane.value},{tenant},{lengths}"


@dataclass(slots=True)
class Proof:
    """What a sanitized log was found to hold, by reading it.

    Args:
        requests: lines.
        lanes: lines by lane.
        tenants: distinct hashes.
        strings: strings of the log that were looked for.
    """

    requests: int = 0
    lanes: Counter[str] = field(default_factory=Counter)
    tenants: set[str] = field(default_factory=set)
    strings: int = 0


def prove(output: Iterable[bytes], log: Iterable[bytes]) -> Proof:
    """Read a sanitized log again and return what it holds.

    Args:
        output: its bytes in pieces.
        log: bytes of the log that it was made of.

    Raises:
        TraceError: a line has another form, or holds a string of the log that is not allowed.
    """
    proof = _formed(output)
    cells = frozenset({*proof.lanes, *proof.tenants})
    text = "\n".join(sorted(cells))
    for number, line in numbered_lines(log):
        for string in _strings(orjson.loads(line)):
            proof.strings += 1
            if string in ALLOWED_STRINGS or string.isdigit():
                continue
            if string in cells or (len(string) >= LEAST_FOUND_CHARACTERS and string in text):
                raise TraceError(f"the output holds {shown(string)} of line {number} of the log")
    return proof


def _formed(output: Iterable[bytes]) -> Proof:
    proof = Proof()
    lines = numbered_lines(output)
    header = next(lines, (1, ""))[1]
    if header != ",".join(COLUMNS):
        raise TraceError(f"the output begins with {shown(header)}", 1)
    for number, line in lines:
        row = _ROW.fullmatch(line)
        if row is None:
            raise TraceError(f"the output has a line of another form: {shown(line)}", number)
        proof.requests += 1
        proof.lanes[row["lane"]] += 1
        proof.tenants.add(row["tenant"])
    return proof


def _hash(tenant: str, key: bytes) -> str:
    return f"t{hmac.new(key, tenant.encode(), 'sha256').hexdigest()[:16]}"


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings in a parsed line, however deep; names of fields are the log's form, not its content."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
