"""The interface of an engine adapter, and the values that pass through it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from llmshed.admission.reasons import Reason
from llmshed.admission.signals.readings import ReplicaReading
from llmshed.errors import ExitCode, LlmshedError
from llmshed.tokenizing.prompts import Prompt


class Route(StrEnum):
    """A generating or counting route of the data listener; the value is its path."""

    ROOT = "/"
    GENERATE = "/generate"
    GENERATE_STREAM = "/generate_stream"
    CHAT = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"
    TOKENIZE = "/tokenize"
    CHAT_TOKENIZE = "/chat_tokenize"

    @property
    def dialect(self) -> "Dialect":
        """Return the form in which errors of this route are told."""
        return Dialect.OPENAI if self.value.startswith("/v1/") else Dialect.NATIVE

    @property
    def generates(self) -> bool:
        """Say whether the route produces tokens, so that its requests are admitted."""
        return self not in {Route.TOKENIZE, Route.CHAT_TOKENIZE}


class Dialect(StrEnum):
    """The two error envelopes: TGI's `{"error": text, ...}` and OpenAI's `{"error": {...}}`."""

    NATIVE = "native"
    OPENAI = "openai"


class BodyError(LlmshedError):
    """A body that is refused before it is counted; `param` is the path of the field, if one is to blame."""

    exit_code = ExitCode.BAD_DATA

    def __init__(self, reason: Reason, message: str, param: str | None = None) -> None:
        """Keep the reason word beside the sentence."""
        super().__init__(message)
        self.reason = reason
        self.param = param


@dataclass(frozen=True, slots=True)
class Call:
    """A parsed request body, in the terms of the gateway.

    Args:
        route: where it was sent.
        body: the parsed body without nulls and what the engine has no use for; what is forwarded is its canonical
            serialisation, with the ceiling written in.
        streamed: whether the answer is a stream of events.
        model: model named in the body; None when absent.
        prompts: what is to be counted, one entry a prompt.
        copies: sequences that each prompt runs as (`n`, `best_of`).
        asked_output_tokens: ceiling asked for; None when absent or null.
        truncate_tokens: TGI's `truncate`; None when absent.
        images: most images that the engine can find in the prompts; each is counted by the pool's bound, or the whole
            prompt by the engine, since base64 is no text.
        declared_intent: `metadata.llmshed_intent`, or `bulk` for `service_tier: flex`; None when not declared.
        session_hint: `prompt_cache_key`; None when absent.
    """

    route: Route
    body: Mapping[str, Any]
    streamed: bool
    model: str | None
    prompts: tuple[Prompt, ...]
    copies: int = 1
    asked_output_tokens: int | None = None
    truncate_tokens: int | None = None
    images: int = 0
    declared_intent: str | None = None
    session_hint: str | None = None


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What a replica tells of itself; None where this engine or version does not tell.

    Args:
        model_id: model that it runs.
        version: the engine's version, as it writes it.
        max_concurrent_requests: permits; more requests than these are refused.
        max_input_tokens: most input of one sequence.
        max_total_tokens: most input and output of one sequence.
        max_batch_total_tokens: size of the KV cache; for llama.cpp an upper bound of it.
        max_best_of: most sequences of one prompt.
        max_client_batch_size: most prompts of one request.
        model_revision: commit of the model's repository.
        dtype: type of the weights, as the engine writes it.
        max_running_sequences: sequences that run together; more wait.
    """

    model_id: str
    version: str
    max_concurrent_requests: int | None = None
    max_input_tokens: int | None = None
    max_total_tokens: int | None = None
    max_batch_total_tokens: int | None = None
    max_best_of: int | None = None
    max_client_batch_size: int | None = None
    model_revision: str | None = None
    dtype: str | None = None
    max_running_sequences: int | None = None


class UpstreamFault(StrEnum):
    """What an engine's error says about who is to blame."""

    BUSY = "busy"
    """The engine's own permits are taken: told to the client as `concurrency_limit`."""
    CLIENT = "client"
    """The request itself is wrong: status and text are passed on."""
    ENGINE = "engine"
    """The engine failed."""


@dataclass(frozen=True, slots=True)
class EngineFailure:
    """An error that the engine told, in a status or inside a stream."""

    fault: UpstreamFault
    status: int
    message: str
    error_type: str


@dataclass(slots=True)
class StreamFacts:
    """What has been seen of a stream so far, without changing a byte of it.

    `data_events` counts events that carry data, which comments do not; `output_tokens` counts generated tokens;
    `input_tokens` is the engine's own count of the input, once it told one; `complete` turns True when the stream has
    ended as its route's streams end; `failure` holds the first error event, which may be the first data event: look at
    it before that one is taken for a first token. A stream that failed is never
    `complete`.
    """

    data_events: int = 0
    output_tokens: int = 0
    input_tokens: int | None = None
    complete: bool = False
    failure: EngineFailure | None = None
    finish_reason: str | None = None


class StreamReader(Protocol):
    """Follows a relayed event stream from the side; events may be split anywhere between two reads."""

    facts: StreamFacts

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream and update `facts`."""

    def end(self) -> None:
        """Note that the upstream closed the stream."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What a replica does at present, for whomever; None where it does not tell.

    Args:
        running_requests: sequences that it works at.
        queued_requests: sequences that wait inside it.
        prompt_tokens_total: prompt tokens that it has taken since it started; what was not sent here came from others.
    """

    running_requests: float | None = None
    queued_requests: float | None = None
    prompt_tokens_total: float | None = None


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """A POST to an engine: its path and its JSON body."""

    path: str
    body: bytes


class ReadableEngine(Protocol):
    """The half of an engine that is enough to measure one replica: it is read, and sent plain texts to complete."""

    name: str
    description_paths: tuple[str, ...]
    """Pages on which it tells of itself."""
    takes_template_arguments: bool
    """Whether a request may set arguments of its chat template, as `enable_thinking`."""
    keeps_connections: bool
    """Whether a connection may be used again after a streamed answer."""

    def read_description(self, pages: Mapping[str, bytes]) -> EngineInfo:
        """Read the pages of `description_paths` that were answered with 200, by their path.

        Raises:
            EngineError: they are not this engine's; the text says what was expected and what came.
        """

    def read_metrics(self, body: bytes, kv_tokens: int | None, at: float) -> ReplicaReading:
        """Read the replica's own metrics, asked for at `at`, without trusting them; None for what they do not tell.

        `kv_tokens` is the size of the KV cache where the replica has told it.
        """

    def read_activity(self, body: bytes) -> Activity:
        """Read from the same page whether anybody uses the replica."""

    def text_request(
        self, text: str, output_ceiling_tokens: int, *, runs_to_ceiling: bool, model: str
    ) -> EngineRequest:
        """Ask for a streamed completion of a text, which the engine counts with special tokens.

        With `runs_to_ceiling` the output goes on past its natural end, where the engine can; TGI cannot.
        """

    def text_reader(self) -> StreamReader:
        """Return a reader for the answer to such a request; its `output_tokens` are exact after each event."""

    def count_request(self, text: str, *, model: str) -> EngineRequest:
        """Ask for the tokens of a text, special tokens included."""

    def read_text_count(self, body: bytes) -> int:
        """Return the number of tokens in a 200 answer to such a request.

        Raises:
            EngineError: the answer has another form.
        """

    def read_failure(self, status: int, body: bytes) -> EngineFailure:
        """Read a non-200 answer."""


class Engine(ReadableEngine, Protocol):
    """One engine and version in whole: what the gateway needs to serve with it."""

    def read_call(self, route: Route, body: Mapping[str, Any]) -> Call:
        """Turn a parsed body into a call.

        Raises:
            BodyError: unknown, contradictory or unsupported fields; the text names the field and what is accepted.
        """

    def write_body(self, call: Call, output_ceiling_tokens: int | None) -> bytes:
        """Serialise the call for the engine, the output ceiling written in its field; None leaves it as it came."""

    def read_info(self, info: Mapping[str, Any]) -> EngineInfo:
        """Read the engine's own description of its limits.

        Raises:
            EngineError: the description is not this engine's.
        """

    prefill_blocks_starts: bool
    """Whether nothing else starts on the engine while a prompt is processed."""

    def overrun_chunk_tokens(self, version: str) -> int:
        """Return the chunk up to whose multiple this version may run beyond a ceiling; 0 for none."""

    def stream_reader(self, call: Call) -> StreamReader:
        """Return a reader for the answer to this streamed call."""

    def find_failure(self, body: bytes) -> EngineFailure | None:
        """Return what is wrong with the whole body of a 200 answer to a generating route; None when it is an answer.

        What stands between gateway and engine may put a page of its own there, and a success that holds nothing would
        be told and counted as one.
        """

    def read_token_count(self, route: Route, body: bytes) -> int:
        """Return the number of tokens in a 200 answer of a counting route.

        Raises:
            EngineError: the answer has another form.
        """

    def read_output_tokens(self, call: Call, headers: Mapping[str, str], body: bytes) -> int | None:
        """Return the tokens that a whole answer generated; None when it does not tell."""

    def read_input_tokens(self, headers: Mapping[str, str]) -> int | None:
        """Return the engine's own count of the input of a whole answer; None when its headers do not tell."""
