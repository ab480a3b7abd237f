"""llmshed's own decision log: what it held of each request, and with it what a gateway really did.

A line stands for one try. Lines of requests that never came before admission (a broken body, a wrong key, a route that
generates nothing, a refusal before the prompt was counted) tell no size; they are left out and counted. Prompts are
named by blocks of 1,024 bytes, of which 256 tokens are taken to be one; a list of prompts runs as that many copies of
their mean.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, Lane, PriorityClass
from llmshed.errors import TraceError
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.workload.folding import RetryFolder
from llmshed.workload.imputing import LoggedLengths
from llmshed.workload.logged import LoggedEnding, LoggedRequest
from llmshed.workload.ordering import by_arrival
from llmshed.workload.readers.fields import LAST_SECONDS, LONGEST_NAME, MOST_TOKENS
from llmshed.workload.readers.lines import numbered_lines, shown
from llmshed.workload.readers.reading import Elapsed, Reading
from llmshed.workload.request import TracedRequest
from llmshed.workload.scaling import NO_TENANT

SCHEMA = "llmshed.decision/1"
BLOCK_TOKENS = 256
"""Of a named block of 1,024 bytes, at the four bytes that a token has in running text."""
FOLDED = "a retry, which stands in its first try"

_REASONS = frozenset(reason.value for reason in Reason)
_LAST_WALL_SECONDS = 1e11
_MOST_SEQUENCES = 1000

_Count = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
_Seconds = Annotated[float, Field(ge=0, le=LAST_SECONDS, allow_inf_nan=False)]
_Name = Annotated[str, Field(min_length=1, max_length=2 * LONGEST_NAME)]
_Hash = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
_Block = Annotated[str, Field(pattern=r"^[0-9a-f]{1,16}$")]


class _Line(BaseModel):
    """What is read of a line; other fields may be there, since fields may be added within a version."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    schema_: Annotated[Literal["llmshed.decision/1"], Field(alias="schema")]
    time_seconds: Annotated[float, Field(ge=0, le=_LAST_WALL_SECONDS, allow_inf_nan=False)]
    ending: LoggedEnding
    status: Annotated[int, Field(ge=0, le=999)]
    total_seconds: _Seconds | None
    lane: Lane | None = None
    intent: Intent | None = None
    priority_class: PriorityClass | None = None
    tenant: _Name | None = None
    streamed: bool | None = None
    retry_count: _Count | None = None
    prompt_tokens: Annotated[tuple[_Count, ...], Field(max_length=_MOST_SEQUENCES)] = ()
    copies: Annotated[int, Field(ge=1, le=_MOST_SEQUENCES)] = 1
    asked_output_tokens: _Count | None = None
    output_ceiling_tokens: _Count | None = None
    output_tokens: Annotated[int, Field(ge=0, le=MOST_TOKENS * _MOST_SEQUENCES)] | None = None
    reason: _Hash | None = None
    retry_after_seconds: _Seconds | None = None
    fingerprint: _Hash | None = None
    session: _Hash | None = None
    prefix_blocks: Annotated[tuple[_Block, ...], Field(max_length=1024)] = ()
    ttft_seconds: _Seconds | None = None
    tpot_seconds: _Seconds | None = None
    replica: _Name | None = None
    config_version: _Hash | None = None


def read_decision_log(chunks: Iterable[bytes], reading: Reading) -> Iterator[TracedRequest]:
    """Yield the requests of a decision log in order of arrival; the first arrives at 0.

    Each try is a request of its own, as it came; where `reading` asks for it, retries are folded into first tries. What
    true lengths are is told in `imputing`; they are drawn from the lines of about an hour ahead and all before.

    Raises:
        TraceError: a line is not of this log, or lines are farther out of order than a log's are.
    """
    lengths = LoggedLengths(reading.rng)
    tries = by_arrival(_observed(_lines(chunks, reading.skipped), lengths), reading.skipped)
    folder = RetryFolder()
    elapsed = Elapsed()
    for logged in folder.first_tries(tries) if reading.fold_retries else tries:
        at_seconds = elapsed.since_first(round(logged.time_seconds * 1e9), logged.line)
        length = lengths.true_length(logged)
        if length is None:
            reading.skipped["no output tokens, and none seen to guess from"] += 1
            continue
        yield _traced(logged, at_seconds, length.tokens, imputed=length.imputed)
    if folder.folded:
        reading.skipped[FOLDED] += folder.folded


def read_logged(chunks: Iterable[bytes]) -> Iterator[LoggedRequest]:
    """Yield every try of a decision log in order of arrival, with what became of it.

    Raises:
        TraceError: a line is not of this log.
    """
    skipped: Counter[str] = Counter()
    return by_arrival(_lines(chunks, skipped), skipped)


def _lines(chunks: Iterable[bytes], skipped: "Counter[str]") -> Iterator[LoggedRequest]:
    for number, text in numbered_lines(chunks):
        line = _parsed(text, number)
        logged = _logged(line, number)
        if logged is not None:
            yield logged
        else:
            skipped[f"no prompt of a known size{_why(line.reason)}"] += 1


def _why(reason: str | None) -> str:
    """Return a reason of the table, whose number is bounded whatever a log holds."""
    if reason is None:
        return ""
    return f" ({reason})" if reason in _REASONS else " (another reason)"


def _observed(requests: Iterable[LoggedRequest], lengths: LoggedLengths) -> Iterator[LoggedRequest]:
    for request in requests:
        lengths.observe(request)
        yield request


def _parsed(text: str, number: int) -> _Line:
    try:
        return _Line.model_validate_json(text)
    except ValidationError as error:
        raise TraceError(_problem(error, text), number) from None


def _problem(error: ValidationError, text: str) -> str:
    """Return the first mistake of a line in the words of this project."""
    first = error.errors(include_url=False)[0]
    field = ".".join(map(str, first["loc"]))
    if field in {"", "schema"}:
        return f"not a line of {SCHEMA}: {shown(text)}"
    if first["type"] == "missing":
        return f"{field} is missing; each line of {SCHEMA} has it"
    return f"{field} is {shown(first['input'])}: {first['msg'][0].lower()}{first['msg'][1:]}"


def _logged(line: _Line, number: int) -> LoggedRequest | None:
    """Return the request of a line; None of one that never came before admission, or whose size nobody knows."""
    if line.lane is None or line.total_seconds is None or not line.prompt_tokens:
        return None
    return LoggedRequest(
        line=number,
        time_seconds=line.time_seconds,
        total_seconds=line.total_seconds,
        ending=line.ending,
        status=line.status,
        lane=line.lane,
        prompt_tokens=line.prompt_tokens,
        intent=line.intent,
        priority_class=line.priority_class,
        tenant=line.tenant,
        streamed=line.streamed is not False,
        retry_count=line.retry_count,
        copies=line.copies,
        asked_output_tokens=line.asked_output_tokens,
        ceiling_tokens=line.output_ceiling_tokens,
        output_tokens=line.output_tokens,
        retry_after_seconds=line.retry_after_seconds,
        fingerprint=line.fingerprint,
        session=line.session,
        prefix_blocks=tuple(int(block, 16) for block in line.prefix_blocks),
        ttft_seconds=line.ttft_seconds,
        tpot_seconds=line.tpot_seconds,
        replica=line.replica,
        config_version=line.config_version,
    )


def _traced(logged: LoggedRequest, at_seconds: float, output_tokens: int, *, imputed: bool) -> TracedRequest:
    ids = logged.prefix_blocks[: logged.input_tokens_each // BLOCK_TOKENS]
    return TracedRequest(
        at_seconds,
        logged.input_tokens_each,
        output_tokens,
        asked_output_tokens=logged.asked_output_tokens,
        tenant=logged.tenant or NO_TENANT,
        intent=logged.intent,
        priority_class=logged.priority_class,
        session=logged.session,
        blocks=PromptBlocks(ids, BLOCK_TOKENS) if ids else None,
        streamed=logged.streamed,
        copies=logged.sequences,
        imputed=imputed,
    )
