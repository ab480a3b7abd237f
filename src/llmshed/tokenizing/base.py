"""What the rest of the system sees of a tokenizer."""

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


class PromptCounter(Protocol):
    """Counts prompts exactly; thread safe."""

    def bounds(self, prompt: Prompt) -> TokenBounds:
        """Bound the count without tokenizing or rendering: cheap enough for the event loop."""

    def count(self, prompt: Prompt) -> PromptCount:
        """Count a prompt as the engine will.

        Raises:
            PromptError: the prompt cannot be counted; the text says why and what is accepted.
        """
