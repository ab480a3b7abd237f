"""The numbers that make one simulated vLLM replica, under the names of its own options."""

from dataclasses import dataclass, field
from enum import StrEnum

from llmshed.simulation.cost import StepTimes, within
from llmshed.simulation.parameters import MAX_TOKENS


class SchedulingPolicy(StrEnum):
    """In which order waiting sequences join, and which running one is preempted."""

    FCFS = "fcfs"
    PRIORITY = "priority"
    """The lower number first; ties by arrival."""


@dataclass(frozen=True, slots=True)
class VllmParameters:
    """A simulated vLLM replica; the KV cache is as large as that of the simulated TGI replica.

    Args:
        max_num_seqs: most running sequences.
        max_num_batched_tokens: most tokens of one step, prompts and decodes together.
        max_model_len: longest prompt and output of one sequence.
        kv_tokens: size of the KV cache as vLLM logs it: blocks x tokens of a block.
        block_tokens: KV tokens of one block; 16 on a GPU, 128 on a CPU.
        watermark_ratio: share of the blocks that must stay free when a sequence joins others.
        chunked_prefill: whether a prompt may be worked through in several steps.
        long_prefill_token_threshold: most tokens of one prompt in one step; 0 for no bound of its own.
        policy: order of service and of preemption.
        prefix_caching: whether full blocks are found again by their content.
        scheduler_reserve_full_isl: whether a sequence joins only when all of its prompt has room, not just the first
            piece.
        max_num_queued_reqs: most unfinished sequences, running ones included; None for no limit.
        max_num_queued_tokens: with so many prompt tokens still without a first output token no sequence is taken;
            None for no limit.
        step_times: the step-time model.
    """

    max_num_seqs: int = 256
    max_num_batched_tokens: int = 2048
    max_model_len: int = 8192
    kv_tokens: int = 49_152
    block_tokens: int = 16
    watermark_ratio: float = 0.0
    chunked_prefill: bool = True
    long_prefill_token_threshold: int = 0
    policy: SchedulingPolicy = SchedulingPolicy.FCFS
    prefix_caching: bool = True
    scheduler_reserve_full_isl: bool = True
    max_num_queued_reqs: int | None = None
    max_num_queued_tokens: int | None = None
    step_times: StepTimes = field(default_factory=StepTimes)

    def __post_init__(self) -> None:
        """Check ranges and that the numbers fit each other, as vLLM does at its start.

        Raises:
            ValueError: one number is out of range or contradicts another; the text names both.
        """
        within("max_num_seqs", self.max_num_seqs, 1, 1_000_000)
        within("max_num_batched_tokens", self.max_num_batched_tokens, 1, MAX_TOKENS)
        within("max_model_len", self.max_model_len, 2, MAX_TOKENS)
        within("kv_tokens", self.kv_tokens, 2, MAX_TOKENS)
        within("block_tokens", self.block_tokens, 1, 4096)
        within("watermark_ratio", self.watermark_ratio, 0, 1)
        within("long_prefill_token_threshold", self.long_prefill_token_threshold, 0, MAX_TOKENS)
        for name in ("max_num_queued_reqs", "max_num_queued_tokens"):
            limit = getattr(self, name)
            if limit is not None:
                within(name, limit, 1, MAX_TOKENS)
        if self.policy not in set(SchedulingPolicy):
            raise ValueError(f"policy is {self.policy!r}; accepted are {', '.join(SchedulingPolicy)}")
        self._check_together()

    def _check_together(self) -> None:
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ValueError(
                f"max_num_batched_tokens {self.max_num_batched_tokens} must be at least max_num_seqs "
                f"{self.max_num_seqs}: each running sequence takes a token of a step"
            )
        if not self.chunked_prefill and self.max_num_batched_tokens < self.max_model_len:
            raise ValueError(
                f"max_num_batched_tokens {self.max_num_batched_tokens} must be at least max_model_len "
                f"{self.max_model_len} without chunked prefill, which works through a prompt in one step"
            )
        # The last token of an answer is never computed, so a sequence needs room for one less.
        if self.usable_blocks * self.block_tokens < self.max_model_len - 1:
            raise ValueError(
                f"max_model_len {self.max_model_len} does not fit kv_tokens {self.kv_tokens} "
                f"in blocks of {self.block_tokens}, of which one is the engine's own"
            )

    @property
    def usable_blocks(self) -> int:
        """Return the blocks that sequences may hold; vLLM keeps one as its null block."""
        return self.kv_tokens // self.block_tokens - 1

    @property
    def watermark_blocks(self) -> int:
        """Return the blocks that stay free when a sequence joins others; a share of all, the null block included."""
        return int(self.watermark_ratio * (self.kv_tokens // self.block_tokens))
