"""The numbers that make one simulated replica: limits of the router, size of the KV cache, duration of a step."""

from dataclasses import dataclass, field

from llmshed.simulation.attention import Attention
from llmshed.simulation.cost import StepTimes, within
from llmshed.simulation.pace import Pace
from llmshed.simulation.versions import VersionRules, version_rules

CHUNK_TOKENS = 1024
"""TGI's DEFAULT_GENERATION_LENGTH: output is reserved, and from 3.1.1 produced, in chunks of this size."""

MAX_SPECULATED_TOKENS = 64
"""Far above what speculation guesses ahead in practice, which is 2 to 5."""

MAX_TOKENS = 100_000_000
"""Bound on every token parameter: far above any engine, low enough that nothing overflows or never ends."""


@dataclass(frozen=True, slots=True)
class ReplicaParameters:
    """A simulated replica; the defaults feel like one small GPU that answers quickly.

    Args:
        version: TGI version whose behaviour is followed.
        max_concurrent_requests: permits; queued and running sequences together.
        max_input_tokens: longest prompt.
        max_total_tokens: longest prompt and output of one sequence.
        max_batch_prefill_tokens: most tokens that one step works through.
        max_batch_size: most running sequences; None for any number. With chunked prefill it holds only for those that
            start a batch from idle, as in TGI.
        kv_tokens: size of the KV cache, `max_batch_total_tokens`.
        block_tokens: KV tokens of one block.
        attention: kernels; None when not known. They settle the size of a block, and paged attention has neither
            chunked prefill nor a prefix cache.
        chunked_prefill: False as with PREFILL_CHUNKING=0; what it comes to is `prefills_in_pieces`.
        prefix_caching: whether prompts that begin alike are computed once. TGI turns it on by itself from 3.0 with
            flashinfer; here it has to be asked for.
        speculate: tokens guessed ahead in a decode step; above 0 there is no chunked prefill.
        accepted_tokens: guesses of a step that prove right, in the mean; up to `speculate`.
        max_client_batch_size: most prompts in one completions request.
        max_best_of: most sequences that one native request may ask for.
        max_stop_sequences: most stop texts of one request.
        max_waiting_steps: steps after which waiting requests join whatever their number; without chunked prefill only.
        step_times: the step-time model.
    """

    version: str = "3.3.5"
    max_concurrent_requests: int = 128
    max_input_tokens: int = 8191
    max_total_tokens: int = 8192
    max_batch_prefill_tokens: int = 4096
    max_batch_size: int | None = None
    kv_tokens: int = 49_152
    block_tokens: int = 1
    attention: Attention | None = None
    chunked_prefill: bool = True
    prefix_caching: bool = False
    speculate: int = 0
    accepted_tokens: float = 0.0
    max_client_batch_size: int = 4
    max_best_of: int = 2
    max_stop_sequences: int = 4
    max_waiting_steps: int = 20
    step_times: StepTimes = field(default_factory=StepTimes)
    rules: VersionRules = field(init=False)

    def __post_init__(self) -> None:
        """Check ranges and that the numbers fit each other, as TGI's launcher does.

        Raises:
            ValueError: one number is out of range or contradicts another; the text names both.
        """
        object.__setattr__(self, "rules", version_rules(self.version))
        within("max_concurrent_requests", self.max_concurrent_requests, 1, 1_000_000)
        within("max_input_tokens", self.max_input_tokens, 1, MAX_TOKENS)
        within("max_total_tokens", self.max_total_tokens, 2, MAX_TOKENS)
        within("max_batch_prefill_tokens", self.max_batch_prefill_tokens, 1, MAX_TOKENS)
        within("kv_tokens", self.kv_tokens, 2, MAX_TOKENS)
        within("block_tokens", self.block_tokens, 1, 4096)
        for name in ("max_client_batch_size", "max_best_of", "max_stop_sequences", "max_waiting_steps"):
            within(name, getattr(self, name), 1, 1_000_000)
        if self.max_batch_size is not None:
            within("max_batch_size", self.max_batch_size, 1, 1_000_000)
        within("speculate", self.speculate, 0, MAX_SPECULATED_TOKENS)
        if not 0 <= self.accepted_tokens <= self.speculate:
            told = f"accepted_tokens is {self.accepted_tokens:g}; accepted are 0 to {self.speculate}"
            raise ValueError(f"{told}, the value of speculate")
        self._check_cache()
        self._check_together()

    def _check_cache(self) -> None:
        if self.attention is not None and self.block_tokens != self.attention.block_tokens:
            raise ValueError(
                f"block_tokens {self.block_tokens} does not go with attention {self.attention.value}, "
                f"whose blocks have {self.attention.block_tokens}"
            )
        if self.prefix_caching and not self.rules.knows_prefix_caching:
            raise ValueError(f"prefix_caching is not known to TGI {self.version}: 2.3.0 and later have it")
        if self.prefix_caching and self.attention is Attention.PAGED:
            raise ValueError("prefix_caching is not possible with attention paged")

    def _check_together(self) -> None:
        if self.max_input_tokens >= self.max_total_tokens:
            raise ValueError(
                f"max_input_tokens {self.max_input_tokens} must be below max_total_tokens {self.max_total_tokens}"
            )
        if self.usable_blocks * self.block_tokens < self.max_total_tokens - 1:
            raise ValueError(
                f"max_total_tokens {self.max_total_tokens} does not fit kv_tokens {self.kv_tokens} "
                f"in blocks of {self.block_tokens}, of which one is the engine's own"
            )
        if not self.prefills_in_pieces and self.max_batch_prefill_tokens < self.max_input_tokens:
            raise ValueError(
                f"max_batch_prefill_tokens {self.max_batch_prefill_tokens} must be at least max_input_tokens "
                f"{self.max_input_tokens} for TGI {self.version} as set up here, which prefills a prompt in one step"
            )

    @property
    def usable_blocks(self) -> int:
        """Return the blocks that requests may hold; block 0 is kept for health checks."""
        return self.kv_tokens // self.block_tokens - 1

    @property
    def prefills_in_pieces(self) -> bool:
        """Say whether a prompt is prefilled in pieces beside decoding sequences (server/models/model.py)."""
        asked = self.rules.chunked_prefill and self.chunked_prefill
        return asked and self.speculate == 0 and self.attention is not Attention.PAGED

    @property
    def pace(self) -> Pace:
        """Return the tokens that decode steps give a sequence."""
        return Pace(self.accepted_tokens)
