"""What the rest of the system sees of a tokenizer."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from llmshed.tokenizing.prompts import ChatPrompt, Prompt, PromptCount


class ChatRenderer(Protocol):
    """Turns a message list into the text that the engine tokenizes."""

    def render(self, prompt: ChatPrompt) -> str:
        """Return the rendered text.

        Raises:
            PromptError: the template refuses the messages, or the engine does not take their form.
        """


class TokenBounds(NamedTuple):
    """Least and greatest count that a prompt can have, known from its bytes alone; `high` is None when unbounded."""

    low: int
    high: int | None


class Digests(NamedTuple):
    """SHA-256 digests, in hex, of tokenizer.json and of the chat template; None where there is none, or not known."""

    tokenizer_sha256: str | None = None
    template_sha256: str | None = None


NO_DIGESTS = Digests()


class PromptCounter(Protocol):
    """Counts prompts exactly; thread safe."""

    digests: Digests
    """What it counts by."""

    def bounds(self, prompt: Prompt) -> TokenBounds:
        """Bound the count without tokenizing or rendering: cheap enough for the event loop."""

    def count(self, prompt: Prompt) -> PromptCount:
        """Count a prompt as the engine will.

        Raises:
            PromptError: the prompt cannot be counted; the text says why and what is accepted.
        """

    def steps(self, prompt: Prompt, enough_tokens: int | None = None) -> Iterator[PromptCount | None]:
        """Count a prompt step by step: None after each step but the last, which yields the count.

        A step is bounded work, for a thread that others wait for too; each may run in another thread. A prompt of more
        than `enough_tokens` need not be counted to its end: then the count is a bound, and higher than that.

        Raises:
            PromptError: as `count`.
        """
