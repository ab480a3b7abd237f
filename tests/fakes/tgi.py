"""A replica that describes itself and counts words as tokens, for tests of how replicas are met and watched."""

import asyncio
from collections.abc import Iterator
from typing import Any

import orjson

from fakes.engine import Conversation, ScriptedEngine
from llmshed.tokenizing.base import NO_DIGESTS, TokenBounds
from llmshed.tokenizing.prompts import ChatPrompt, IdsPrompt, Prompt, PromptCount, TextPrompt

INFO = {
    "model_id": "org/model",
    "version": "3.3.5",
    "max_concurrent_requests": 128,
    "max_input_tokens": 4095,
    "max_total_tokens": 4096,
    "max_best_of": 2,
    "max_client_batch_size": 4,
}


def words(prompt: Prompt) -> int:
    match prompt:
        case TextPrompt(text):
            return len(text.split())
        case ChatPrompt():
            return sum(len(str(message.get("content")).split()) for message in prompt.messages)
        case IdsPrompt(ids):
            return len(ids)


class WordCounter:
    """Counts words; `extra` more than the engine does."""

    digests = NO_DIGESTS

    def __init__(self, extra: int = 0) -> None:
        self.extra = extra

    def bounds(self, prompt: Prompt) -> TokenBounds:
        return TokenBounds(0, words(prompt))

    def count(self, prompt: Prompt) -> PromptCount:
        return PromptCount(words(prompt) + self.extra, 0)

    def steps(self, prompt: Prompt, enough_tokens: int | None = None) -> Iterator[PromptCount | None]:
        del enough_tokens
        yield self.count(prompt)


class WordTgi(ScriptedEngine):
    """Answers `/info`, `/health` and the counting routes."""

    def __init__(self, **info: Any) -> None:
        super().__init__(self._answer)
        self.info = INFO | info
        self.health = "200 OK"
        self.health_answers = asyncio.Event()
        self.health_answers.set()
        self.counts = True
        self.asks_for_a_key = False

    def asked_for(self, path: str) -> int:
        return sum(asked.path == path for asked in self.asked)

    async def _answer(self, conversation: Conversation) -> None:
        asked = conversation.asked
        match asked.path:
            case "/info":
                await conversation.whole(orjson.dumps(self.info))
            case "/health":
                await self.health_answers.wait()
                await conversation.whole(b"", self.health)
            case "/tokenize" | "/chat_tokenize" if self.asks_for_a_key:
                await conversation.whole(b"", "401 Unauthorized")
            case "/tokenize" if self.counts:
                text = orjson.loads(asked.body)["inputs"]
                await conversation.whole(orjson.dumps([{"id": 1}] * words(TextPrompt(text))))
            case "/chat_tokenize" if self.counts:
                prompt = ChatPrompt(orjson.loads(asked.body)["messages"])
                await conversation.whole(orjson.dumps({"tokenize_response": [{"id": 1}] * words(prompt)}))
            case _:
                await conversation.whole(b"", "404 Not Found")
