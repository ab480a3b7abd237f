"""A request as the oracle knows it."""

from dataclasses import dataclass
from math import inf

from llmshed.simulation.prefixes import PromptBlocks
from llmshed.whatif.gates.engine_facts import Repeat
from llmshed.whatif.gates.prompts import NO_WORK, PromptWork


@dataclass(slots=True, eq=False)
class Passenger:
    """A request with its true length; tokens are of all its sequences together but for `output_tokens`.

    Args:
        key: the request.
        sequences: how many it runs as.
        input_tokens: of its prompts.
        output_tokens: true output of each sequence, within its ceiling.
        prompt_tokens: of each of its prompts.
        copies: sequences of each prompt.
        blocks: identity of its prompt's leading tokens; None when no cache is asked, or it has several prompts.
        kv_tokens: most KV that it ever holds.
        deadline: last instant at which its first token is in time.
        slack_seconds: TTFT objective less TTFT on an idle replica: how long it may wait at all.
        tpot_seconds: most mean time per token after the first.
        first_token_seen: whether a first token will be told; without, the forecast stands for it.
        repeats: prompts that the engine computes anew while it answers.
        work: what the engine computes of its prompts; known once it is sent.
        prefix: what of its prompt others may refer to as well; likewise.
        forecast_at: when its first token is expected; infinity before it is sent.
        first_token_at: when it came; None before that.
    """

    key: int
    sequences: int
    input_tokens: int
    output_tokens: int
    prompt_tokens: tuple[int, ...]
    copies: int
    blocks: PromptBlocks | None
    kv_tokens: int
    deadline: float
    slack_seconds: float
    tpot_seconds: float
    first_token_seen: bool
    repeats: tuple[Repeat, ...] = ()
    work: PromptWork = NO_WORK
    prefix: PromptBlocks | None = None
    forecast_at: float = inf
    first_token_at: float | None = None

    @property
    def true_tokens(self) -> int:
        """Return input and output of all sequences: what it will have held when it ends."""
        return self.input_tokens + self.sequences * self.output_tokens
