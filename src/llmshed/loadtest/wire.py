"""How an ask looks on the wire: as plain text in the engine's own form, or as a chat of one message."""

from typing import TYPE_CHECKING, Final, Protocol

import orjson

from llmshed.engines.base import Call, EngineRequest, Route
from llmshed.engines.registry import engine
from llmshed.loadtest.prompts import as_prompt

if TYPE_CHECKING:
    from llmshed.engines.base import EngineFailure, ReadableEngine, StreamReader
    from llmshed.workload.asks import Ask


class Wire(Protocol):
    """Writes requests and reads their answers."""

    chat: bool
    """Whether a prompt is the one message of a chat, so that it is counted with the chat template around it."""

    def request(self, ask: "Ask", text: str) -> EngineRequest:
        """Return the path and the body of a streamed request."""

    def reader(self) -> "StreamReader":
        """Return a reader of the answer to one request."""

    def read_failure(self, status: int, body: bytes) -> "EngineFailure":
        """Read an answer whose status is not 200."""


class TextWire:
    """Plain text, as the engine itself takes it.

    Args:
        engine: adapter of the engine that is asked.
        model: name that it knows the model by.
    """

    chat = False

    def __init__(self, engine: "ReadableEngine", model: str) -> None:
        self._engine = engine
        self._model = model

    def request(self, ask: "Ask", text: str) -> EngineRequest:
        """Return a streamed request for a completion of the text."""
        return self._engine.text_request(
            text, ask.ceiling_tokens, runs_to_ceiling=ask.runs_to_ceiling, model=self._model
        )

    def reader(self) -> "StreamReader":
        """Return a reader of the engine's own form of stream."""
        return self._engine.text_reader()

    def read_failure(self, status: int, body: bytes) -> "EngineFailure":
        """Read the engine's error."""
        return self._engine.read_failure(status, body)


_TGI: Final = "tgi"


class ChatWire:
    """A chat of one message on OpenAI's route, as a gateway and Text Generation Inference take it.

    The engine cannot be told there to go on to the ceiling.

    Args:
        model: name of the model.
    """

    chat = True

    def __init__(self, model: str) -> None:
        self._engine = engine(_TGI)
        self._model = model
        # What a reader of a stream looks at: one prompt of one sequence, whatever its text.
        self._call = Call(Route.CHAT, {}, streamed=True, model=model, prompts=(as_prompt("", chat=True),))

    def request(self, ask: "Ask", text: str) -> EngineRequest:
        """Return a streamed request for an answer to the text."""
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": ask.ceiling_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return EngineRequest(Route.CHAT.value, orjson.dumps(body))

    def reader(self) -> "StreamReader":
        """Return a reader of chunks."""
        return self._engine.stream_reader(self._call)

    def read_failure(self, status: int, body: bytes) -> "EngineFailure":
        """Read the error of a gateway or of the engine."""
        return self._engine.read_failure(status, body)
