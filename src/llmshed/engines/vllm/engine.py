"""The adapter of vLLM, as far as it takes to measure a replica.

Versions 0.6 to 0.33; what their sources say is in `docs/engines.md`. What serving needs (reading of clients' bodies,
the chat template's rendering, ceilings on the wire) is not here, so `serve` does not take this engine.
"""

from collections.abc import Mapping
from typing import Final

import orjson

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.engines.base import Activity, EngineFailure, EngineInfo, EngineRequest, StreamReader
from llmshed.engines.fields import INT32_MAX
from llmshed.engines.vllm.description import DESCRIPTION_PATHS, read_vllm_description
from llmshed.engines.vllm.failures import read_answer_failure
from llmshed.engines.vllm.signals import read_vllm_activity, read_vllm_metrics
from llmshed.engines.vllm.stream import VllmStreamReader
from llmshed.errors import EngineError

_COMPLETIONS: Final = "/v1/completions"
_TOKENIZE: Final = "/tokenize"


class VllmEngine:
    """vLLM of any known version, as `ReadableEngine`."""

    name = "vllm"
    description_paths = DESCRIPTION_PATHS
    takes_template_arguments = True
    keeps_connections = True

    def read_description(self, pages: Mapping[str, bytes]) -> EngineInfo:
        """Read version, model and KV cache; see `read_vllm_description`."""
        return read_vllm_description(pages)

    def read_metrics(
        self,
        body: bytes,
        kv_tokens: int | None,  # noqa: ARG002 - other engines need it
        at: float,
    ) -> ReplicaReading:
        """Read `/metrics`, which tells the used share of the KV cache itself; see `read_vllm_metrics`."""
        return read_vllm_metrics(body, at)

    def read_activity(self, body: bytes) -> Activity:
        """Read `/metrics`; see `read_vllm_activity`."""
        return read_vllm_activity(body)

    def text_request(
        self, text: str, output_ceiling_tokens: int, *, runs_to_ceiling: bool, model: str
    ) -> EngineRequest:
        """Ask `/v1/completions`, with the usage in each event, since one event may hold several tokens."""
        body = {
            "model": model,
            "prompt": text,
            "max_tokens": output_ceiling_tokens,
            "ignore_eos": runs_to_ceiling,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        }
        return EngineRequest(_COMPLETIONS, orjson.dumps(body))

    def text_reader(self) -> StreamReader:
        """Return a reader of such a stream."""
        return VllmStreamReader()

    def count_request(self, text: str, *, model: str) -> EngineRequest:
        """Ask `/tokenize`, which adds special tokens as completions do."""
        return EngineRequest(_TOKENIZE, orjson.dumps({"model": model, "prompt": text}))

    def read_text_count(self, body: bytes) -> int:
        """Return the `count` of an answer.

        Raises:
            EngineError: it holds none.
        """
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            answer = None
        count = answer.get("count") if isinstance(answer, dict) else None
        if type(count) is not int or not 0 <= count <= INT32_MAX:
            raise EngineError(f"{_TOKENIZE}: the answer holds no count of tokens")
        return count

    def read_failure(self, status: int, body: bytes) -> EngineFailure:
        """Read an answer whose status is not 200; see `read_answer_failure`."""
        return read_answer_failure(status, body)
