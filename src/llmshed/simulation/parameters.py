"""The numbers that make one simulated replica: limits of the router, size of the KV cache, duration of a step."""

from dataclasses import dataclass, field

from llmshed.simulation.cost import StepTimes, within
from llmshed.simulation.versions import VersionRules, version_rules

CHUNK_TOKENS = 1024
"""TGI's DEFAULT_GENERATION_LENGTH: output is reserved, and from 3.1.1 produced, in chunks of this size."""

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
        kv_tokens: size of the KV cache, `max_batch_total_tokens`.
        block_tokens: KV tokens of one block; 1 with flashinfer.
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
    kv_tokens: int = 49_152
    block_tokens: int = 1
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
        self._check_together()

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
        if not self.rules.chunked_prefill and self.max_batch_prefill_tokens < self.max_input_tokens:
            raise ValueError(
                f"max_batch_prefill_tokens {self.max_batch_prefill_tokens} must be at least max_input_tokens "
                f"{self.max_input_tokens} for TGI {self.version}, which prefills a prompt in one step"
            )

    @property
    def usable_blocks(self) -> int:
        """Return the blocks that requests may hold; block 0 is kept for health checks."""
        return self.kv_tokens // self.block_tokens - 1
