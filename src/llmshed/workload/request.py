"""One request of a trace, whatever trace it came from."""

from dataclasses import dataclass

from llmshed.admission.request import Intent, PriorityClass
from llmshed.simulation.prefixes import PromptBlocks


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """What a client sends, and what only the model knows.

    Args:
        at_seconds: arrival since the start of the trace.
        input_tokens: tokens of the prompt, at least 1.
        true_output_tokens: where the model would stop by itself, at least 1. Only an engine and an oracle may look.
        asked_output_tokens: ceiling that the client asks for; None when it names none.
        tenant: who asks; traces without tenants have one.
        intent: intent that the client declares; None for none.
        priority_class: class that the client declares; None for none.
        session: name of the conversation; None for none.
        blocks: identity of the prompt's leading tokens; None when the trace tells none.
        streamed: whether the answer is a stream.
        copies: sequences of the prompt (`n`, `best_of`).
        imputed: whether the true length is a guess, since the trace did not hold one.
    """

    at_seconds: float
    input_tokens: int
    true_output_tokens: int
    asked_output_tokens: int | None = None
    tenant: str = "trace"
    intent: Intent | None = None
    priority_class: PriorityClass | None = None
    session: str | None = None
    blocks: PromptBlocks | None = None
    streamed: bool = True
    copies: int = 1
    imputed: bool = False
