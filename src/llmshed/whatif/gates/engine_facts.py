"""What an oracle knows of the engine: how long prompts and tokens take, and what room a sequence needs."""

from dataclasses import dataclass
from math import inf

from llmshed.simulation.cost import StepTimes, StepWork
from llmshed.simulation.limits import OutputPlan, plan_output
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.whatif.gates.prompts import PromptWork, prompt_work


@dataclass(frozen=True, slots=True)
class Batch:
    """What decodes on a replica: sequences, and tokens that lie in their KV."""

    sequences: int
    resident_tokens: int


@dataclass(frozen=True, slots=True)
class PrefillTime:
    """How long prompts take beside a batch that decodes.

    Args:
        seconds: from the step in which the first of them begins to the end of the last.
        stall_seconds: the part of it by which the batch is later than without them.
    """

    seconds: float
    stall_seconds: float


@dataclass(frozen=True, slots=True)
class Repeat:
    """A prompt that TGI computes anew in the middle of an answer, with what was produced by then.

    Args:
        after_tokens: output of each sequence at which it goes back to the queue.
        work: of all sequences of the request, as far as the prefix cache does not have it.
    """

    after_tokens: int
    work: PromptWork


class EngineFacts:
    """The step times and limits of the replicas of one setting, whichever engine they are."""

    def __init__(self, parameters: ReplicaParameters | VllmParameters) -> None:
        """Take them from what a replica is."""
        self._parameters = parameters
        self._times: StepTimes = parameters.step_times
        self.kv_tokens = parameters.usable_blocks * parameters.block_tokens
        if isinstance(parameters, VllmParameters):
            self.most_sequences = min(parameters.max_num_seqs, parameters.max_num_queued_reqs or inf)
            self.most_unanswered_tokens = parameters.max_num_queued_tokens or inf
            self.step_prefill_tokens = parameters.max_num_batched_tokens
            self.decodes_between_looks = False
            self.shares_running_prompts = parameters.prefix_caching
        else:
            self.most_sequences = parameters.max_concurrent_requests
            self.most_unanswered_tokens = inf
            # After a step that somebody joined TGI decodes once before it looks at its queue again.
            self.decodes_between_looks = True
            self.step_prefill_tokens = parameters.max_batch_prefill_tokens
            # TGI caches a prompt when it ends: two that run at once share what was there before both.
            self.shares_running_prompts = False

    def decode_seconds(self, batch: Batch) -> float:
        """Return the time of one step without a prompt; that of one sequence for an empty batch."""
        work = StepWork(decoding_sequences=max(batch.sequences, 1), resident_tokens=batch.resident_tokens)
        return self._times.seconds(work)

    def prefill(self, work: PromptWork, batch: Batch) -> PrefillTime:
        """Return how long prompts take together when nothing else joins."""
        room = max(self.step_prefill_tokens - batch.sequences, 1)
        full_steps, rest = divmod(max(work.tokens, 1), room)
        seconds = full_steps * self._step(room, batch) + (self._step(rest, batch) if rest else 0.0)
        seconds += work.attention_pairs * self._times.seconds_per_attention_pair
        steps = full_steps + (1 if rest else 0)
        return PrefillTime(seconds, seconds - steps * self.decode_seconds(batch))

    def worth_ratio(
        self, true_tokens: int, output_tokens: int, sequences: int, work: PromptWork, batch: Batch
    ) -> float:
        """Return the tokens of a request for each second that it costs, by those of short prompts in a second.

        It costs the time by which its prompts, and each of its output tokens, make the steps longer.
        """
        joined = Batch(batch.sequences + sequences, batch.resident_tokens + true_tokens)
        longer = self.decode_seconds(joined) - self.decode_seconds(batch)
        seconds = self.prefill(work, batch).stall_seconds + output_tokens * longer
        return true_tokens * self._times.seconds_per_prefill_token / max(seconds, 1e-9)

    def kv_tokens_of(self, input_tokens: int, ceiling_tokens: int, true_output_tokens: int) -> int:
        """Return the most KV that a sequence ever holds, in whole blocks.

        vLLM takes blocks as tokens come. TGI takes them for a whole chunk of output, up to the ceiling.
        """
        held = input_tokens + true_output_tokens
        if isinstance(self._parameters, ReplicaParameters):
            plan = plan_output(self._parameters, input_tokens, ceiling_tokens, None)
            if isinstance(plan, OutputPlan):
                chunks = -(-true_output_tokens // plan.chunk_tokens)
                held = plan.input_tokens + chunks * plan.chunk_tokens
        block = self._parameters.block_tokens
        return -(-(held - 1) // block) * block

    def repeats_of(
        self, input_tokens: int, ceiling_tokens: int, true_output_tokens: int, copies: int, blocks: PromptBlocks | None
    ) -> tuple[Repeat, ...]:
        """Return the prompts that TGI computes anew at each 1,024 tokens of an answer, in order; none for vLLM.

        Each finds in the cache what the chunk before it was begun with, and never the output of that chunk.
        """
        if not isinstance(self._parameters, ReplicaParameters):
            return ()
        plan = plan_output(self._parameters, input_tokens, ceiling_tokens, None)
        if not isinstance(plan, OutputPlan):
            return ()
        repeats = []
        for produced in range(plan.chunk_tokens, true_output_tokens, plan.chunk_tokens):
            before = input_tokens + produced - plan.chunk_tokens
            cached = 0
            if blocks is not None:
                known = len(blocks.ids) if before == input_tokens else before // blocks.unit_tokens
                cached = min(known * blocks.unit_tokens, before)
            repeats.append(Repeat(produced, prompt_work(input_tokens + produced, cached, copies)))
        return tuple(repeats)

    def _step(self, prefill_tokens: int, batch: Batch) -> float:
        return self._times.seconds(
            StepWork(
                prefill_tokens=prefill_tokens,
                decoding_sequences=batch.sequences,
                resident_tokens=batch.resident_tokens,
            )
        )
