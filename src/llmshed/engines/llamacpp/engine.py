"""The adapter of llama.cpp's server, as far as it takes to measure a replica.

Its behaviour was seen in builds of 2026 and read in their source; `docs/engines.md` says what follows from it. What
serving needs is not here, so `serve` does not take this engine.
"""

from collections.abc import Mapping
from typing import Final

import orjson

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.engines.base import Activity, EngineFailure, EngineInfo, EngineRequest, StreamReader
from llmshed.engines.llamacpp.description import DESCRIPTION_PATHS, read_llamacpp_description
from llmshed.engines.llamacpp.signals import read_llamacpp_activity, read_llamacpp_metrics
from llmshed.engines.llamacpp.stream import LlamaCppStreamReader
from llmshed.engines.openai_failures import read_openai_answer
from llmshed.errors import EngineError

_COMPLETION: Final = "/completion"
_TOKENIZE: Final = "/tokenize"


class LlamaCppEngine:
    """llama.cpp's server of any recent build, as `ReadableEngine`."""

    name = "llamacpp"
    description_paths = DESCRIPTION_PATHS
    takes_template_arguments = True
    # It says `Keep-Alive` and closes all the same, once the client has begun the next request.
    keeps_connections = False

    def read_description(self, pages: Mapping[str, bytes]) -> EngineInfo:
        """Read model, context and slots; see `read_llamacpp_description`."""
        return read_llamacpp_description(pages)

    def read_metrics(
        self,
        body: bytes,
        kv_tokens: int | None,  # noqa: ARG002 - other engines need it
        at: float,
    ) -> ReplicaReading:
        """Read `/metrics`, which tells nothing of the KV cache; see `read_llamacpp_metrics`."""
        return read_llamacpp_metrics(body, at)

    def read_activity(self, body: bytes) -> Activity:
        """Read `/metrics`; see `read_llamacpp_activity`."""
        return read_llamacpp_activity(body)

    def text_request(
        self,
        text: str,
        output_ceiling_tokens: int,
        *,
        runs_to_ceiling: bool,
        model: str,  # noqa: ARG002 - other engines need it
    ) -> EngineRequest:
        """Ask `/completion`, which runs one model and tells its count in each event."""
        body = {
            "prompt": text,
            "n_predict": output_ceiling_tokens,
            "ignore_eos": runs_to_ceiling,
            "stream": True,
        }
        return EngineRequest(_COMPLETION, orjson.dumps(body))

    def text_reader(self) -> StreamReader:
        """Return a reader of such a stream."""
        return LlamaCppStreamReader()

    def count_request(
        self,
        text: str,
        *,
        model: str,  # noqa: ARG002 - other engines need it
    ) -> EngineRequest:
        """Ask `/tokenize` as `/completion` reads its prompt: special tokens added, and known in the text."""
        return EngineRequest(_TOKENIZE, orjson.dumps({"content": text, "add_special": True, "parse_special": True}))

    def read_text_count(self, body: bytes) -> int:
        """Count the `tokens` of an answer.

        Raises:
            EngineError: it holds none.
        """
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            answer = None
        tokens = answer.get("tokens") if isinstance(answer, dict) else None
        if not isinstance(tokens, list):
            raise EngineError(f"{_TOKENIZE}: the answer holds no list of tokens")
        return len(tokens)

    def read_failure(self, status: int, body: bytes) -> EngineFailure:
        """Read an answer whose status is not 200; its 503 means that the model is not loaded yet."""
        return read_openai_answer(status, body)
