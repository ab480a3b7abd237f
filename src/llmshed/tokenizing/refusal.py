"""Sentences for a chat template that does not take the messages; of the prompt they tell what the template tells."""

from llmshed.errors import PromptError

_MOST_CHARACTERS = 300


class EndlessTemplateError(PromptError):
    """Rendering was given up: the template's loops take too many steps for so many messages."""

    def __init__(self) -> None:
        """Say what can be done about it."""
        super().__init__("the chat template takes too many steps to render these messages; send fewer of them")


class TemplateRefusal(Exception):  # noqa: N818 - the word of the glossary; it never leaves the package
    """A template called `raise_exception`; the text is the template's own."""


def refused(error: TemplateRefusal) -> PromptError:
    """Tell a refusal in the template's own words, on one line and not without end."""
    words = " ".join(str(error).split())
    if len(words) > _MOST_CHARACTERS:
        words = words[:_MOST_CHARACTERS] + "..."
    return PromptError(f"the chat template refuses the messages: {words}")


def failed(kind: str, line: int | None) -> PromptError:
    """Tell a failure by its kind and the template's line: an error's own text could repeat the prompt."""
    place = "" if line is None else f" in its line {line}"
    return PromptError(f"the chat template cannot render these messages ({kind}{place})")
