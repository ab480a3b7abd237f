"""The adapter of Text Generation Inference, versions 1.4 to 3.3.

What is specific to it stands in the `tgi_` modules beside: fields, calls, messages, images, streams, failures, `/info`
and what differs between versions. Its behaviour was read in the source; `docs/engines.md` says what follows from it.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.engines.base import Activity, Call, EngineFailure, EngineInfo, EngineRequest, Route, StreamReader
from llmshed.engines.description import Description
from llmshed.engines.fields import INT32_MAX
from llmshed.engines.tgi.calls import TgiCallReader
from llmshed.engines.tgi.counts import read_token_count
from llmshed.engines.tgi.failures import find_answer_failure, read_answer_failure
from llmshed.engines.tgi.info import INFO, read_tgi_info
from llmshed.engines.tgi.plain import tgi_count_request, tgi_text_request
from llmshed.engines.tgi.signals import read_tgi_activity, read_tgi_metrics
from llmshed.engines.tgi.stream import NativeStreamReader, OpenAIStreamReader
from llmshed.engines.tgi.versions import AUTO, check_version, facts_of

_GENERATED_HEADER: Final = "x-generated-tokens"
_PROMPT_HEADER: Final = "x-prompt-tokens"


class TgiEngine:
    """Text Generation Inference of one version, as `Engine`."""

    name = "tgi"
    description_paths: tuple[str, ...] = (INFO,)
    takes_template_arguments: bool = False
    keeps_connections: bool = True
    prefill_blocks_starts = True

    def __init__(self, version: str = AUTO, *, allow_truncate: bool = False) -> None:
        """Take a version as the operator or `/info` writes it.

        Args:
            version: like `3.3.5` or `3.3.6-dev0`; `auto` stands for the newest until the engine tells its own.
            allow_truncate: let requests have their prompt cut by `truncate`.

        Raises:
            ConfigError: the version is no version.
        """
        self.version = check_version(version)
        self.facts = facts_of(version)
        self._reader = TgiCallReader(self.facts, allow_truncate)

    def read_call(self, route: Route, body: Mapping[str, Any]) -> Call:
        """Turn a parsed body into a call; see `TgiCallReader.read`."""
        return self._reader.read(route, body)

    def write_body(self, call: Call, output_ceiling_tokens: int | None) -> bytes:
        """Serialise the call's body with its ceiling; the counting routes have none, so theirs is left out."""
        if output_ceiling_tokens is None:
            return orjson.dumps(call.body)
        match call.route:
            case Route.ROOT | Route.GENERATE | Route.GENERATE_STREAM:
                # Without `parameters` TGI samples, with them it does not unless told: adding some must not change that.
                parameters = call.body.get("parameters", {"do_sample": True})
                parameters = {**parameters, "max_new_tokens": output_ceiling_tokens}
                return orjson.dumps({**call.body, "parameters": parameters})
            case Route.CHAT | Route.COMPLETIONS:
                return orjson.dumps(_with_ceiling(call.body, output_ceiling_tokens))
            case Route.TOKENIZE | Route.CHAT_TOKENIZE:
                return orjson.dumps(call.body)

    def read_info(self, info: Mapping[str, Any]) -> EngineInfo:
        """Read `/info`; see `read_tgi_info`."""
        return read_tgi_info(info)

    def read_description(self, pages: Mapping[str, bytes]) -> EngineInfo:
        """Read the page of `/info`; see `read_tgi_info`."""
        return read_tgi_info(Description.page(pages, INFO, "TGI").fields)

    def overrun_chunk_tokens(self, version: str) -> int:
        """Return 1024 from 3.1.1 on, where generation goes on in chunks of that size; 0 before."""
        return facts_of(version).overrun_chunk_tokens

    def read_metrics(self, body: bytes, kv_tokens: int | None, at: float) -> ReplicaReading:
        """Read `/metrics`; see `read_tgi_metrics`."""
        return read_tgi_metrics(body, kv_tokens, at)

    def read_activity(self, body: bytes) -> Activity:
        """Read `/metrics`; see `read_tgi_activity`."""
        return read_tgi_activity(body)

    def text_request(
        self,
        text: str,
        output_ceiling_tokens: int,
        *,
        runs_to_ceiling: bool,  # noqa: ARG002 - other engines need it
        model: str,  # noqa: ARG002 - other engines need it
    ) -> EngineRequest:
        """Ask `/generate_stream`, which runs one model and ends where the text does."""
        return tgi_text_request(text, output_ceiling_tokens)

    def text_reader(self) -> StreamReader:
        """Return a reader of native streams."""
        return NativeStreamReader()

    def count_request(
        self,
        text: str,
        *,
        model: str,  # noqa: ARG002 - other engines need it
    ) -> EngineRequest:
        """Ask `/tokenize`, which runs one model."""
        return tgi_count_request(text)

    def read_text_count(self, body: bytes) -> int:
        """Count the tokens that `/tokenize` lists."""
        return read_token_count(Route.TOKENIZE, body)

    def stream_reader(self, call: Call) -> StreamReader:
        """Return a reader for the route's form of stream."""
        if call.route in {Route.ROOT, Route.GENERATE_STREAM}:
            return NativeStreamReader()
        # TGI runs a chat once whatever `n` says; several sequences of a stream are several prompts.
        text_key = b"content" if call.route is Route.CHAT else b"text"
        return OpenAIStreamReader(len(call.prompts), sends_done=self.facts.sends_done, text_key=text_key)

    def read_failure(self, status: int, body: bytes) -> EngineFailure:
        """Read an answer whose status is not 200; see `read_answer_failure`."""
        return read_answer_failure(status, body)

    def find_failure(self, body: bytes) -> EngineFailure | None:
        """Look for a failure under a status of 200; see `find_answer_failure`."""
        return find_answer_failure(body)

    def read_token_count(self, route: Route, body: bytes) -> int:
        """Count the tokens that a counting route lists; see `read_token_count`."""
        return read_token_count(route, body)

    def read_output_tokens(self, call: Call, headers: Mapping[str, str], body: bytes) -> int | None:
        """Return the tokens that a whole answer generated, all its sequences together.

        With `best_of` the header tells of the best sequence alone; only an answer with details tells of all.
        """
        if not call.route.generates:
            return None
        native = call.route in {Route.ROOT, Route.GENERATE}
        if native and call.copies > 1:
            return _best_of_tokens(_parsed(body), call.copies)
        told = _told_by_header(headers, _GENERATED_HEADER)
        return told if told is not None else _told_by_body(_parsed(body))

    def read_input_tokens(self, headers: Mapping[str, str]) -> int | None:
        """Return what TGI counted of the prompt."""
        return _told_by_header(headers, _PROMPT_HEADER)


def _with_ceiling(body: Mapping[str, Any], output_ceiling_tokens: int) -> dict[str, Any]:
    """Write the ceiling under TGI's one name, where the client's stood; 3.0 and older know no other."""
    written: dict[str, Any] = {}
    for name, value in body.items():
        if name in {"max_tokens", "max_completion_tokens"}:
            written["max_tokens"] = output_ceiling_tokens
        else:
            written[name] = value
    written.setdefault("max_tokens", output_ceiling_tokens)
    return written


def _told_by_header(headers: Mapping[str, str], wanted: str) -> int | None:
    """Read a count in a header of TGI's own; `/v1/completions` writes the sum over its prompts there."""
    for name, value in headers.items():
        if name.lower() == wanted:
            return int(value) if value.isascii() and value.isdigit() and len(value) <= 10 else None
    return None


def _told_by_body(answer: Mapping[str, Any]) -> int | None:
    for place, name in (("details", "generated_tokens"), ("usage", "completion_tokens")):
        told = answer.get(place)
        if isinstance(told, dict) and (count := _tokens(told.get(name))) is not None:
            return count
    return None


def _best_of_tokens(answer: Mapping[str, Any], copies: int) -> int | None:
    details = answer.get("details")
    if not isinstance(details, dict) or not isinstance(details.get("best_of_sequences"), list):
        return None
    sequences = [details, *(other for other in details["best_of_sequences"] if isinstance(other, dict))]
    counts = [count for sequence in sequences if (count := _tokens(sequence.get("generated_tokens"))) is not None]
    return sum(counts) if len(counts) == copies else None


def _parsed(body: bytes) -> Mapping[str, Any]:
    """Return the answer's object, out of the list of one in which `POST /` wraps it."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    if isinstance(answer, list) and answer:
        answer = answer[0]
    return answer if isinstance(answer, dict) else {}


def _tokens(told: object) -> int | None:
    return told if type(told) is int and 0 <= told <= INT32_MAX else None
