"""vLLM's scheduler done the slow way: one step at a time, one object for each block, tokens written out.

It shares nothing with `llmshed.simulation.vllm` but its parameters and the step-time model, and takes no short cut: the
free list is a list, a block's identity is the row of all tokens up to its end. So it tells what the fast model must
give.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from llmshed.simulation.cost import StepWork
from llmshed.simulation.sequences import Sequence
from llmshed.simulation.vllm.parameters import SchedulingPolicy, VllmParameters

Token = tuple[object, ...]


@dataclass(eq=False)
class Block:
    """One block of the KV cache."""

    content: tuple[Token, ...] | None = None
    holders: int = 0


@dataclass(eq=False)
class Job:
    """One request inside the engine."""

    sequence: Sequence
    arrival: int
    limit: int
    tokens: list[Token]
    computed: int = 0
    blocks: list[Block] = field(default_factory=list)
    produced: int = 0
    decoding: bool = False
    first_at: float | None = None
    ended_at: float | None = None
    started_at: float | None = None
    preempted_at: list[float] = field(default_factory=list)

    @property
    def rank(self) -> tuple[int, int]:
        """Return its order under the priority policy."""
        return self.sequence.priority, self.arrival


def prompt_tokens(sequence: Sequence) -> Iterator[Token]:
    """Yield the tokens of a prompt, equal for two prompts exactly where their ids say so."""
    for place in range(sequence.input_tokens):
        prompt = sequence.blocks
        if prompt is not None and place < len(prompt.ids) * prompt.unit_tokens:
            yield ("id", prompt.unit_tokens, prompt.ids[place // prompt.unit_tokens], place % prompt.unit_tokens)
        else:
            yield ("own", sequence.key, place)


class NaiveVllm:
    """An engine that is given its arrivals and departures beforehand."""

    def __init__(
        self, parameters: VllmParameters, arrivals: list[tuple[float, Sequence]], departures: dict[int, float]
    ) -> None:
        """Start idle; times ascend, and no two are equal."""
        self.parameters = parameters
        self.free = [Block() for _ in range(parameters.usable_blocks)]
        self.cached: dict[tuple[Token, ...], list[Block]] = {}
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.jobs: dict[int, Job] = {}
        self.steps = 0
        self.dropped: list[int] = []
        self._arrivals = list(arrivals)
        self._departures = departures
        self._now = 0.0

    def run(self) -> None:
        """Serve everything."""
        while self._arrivals or self.waiting or self.running:
            if not (self.waiting or self.running):
                self._now = max(self._now, self._arrivals[0][0])
            self._take_in()
            self._drop_departed()
            served = self._schedule()
            if served:
                self._execute(served)

    def _take_in(self) -> None:
        while self._arrivals and self._arrivals[0][0] <= self._now:
            _, sequence = self._arrivals.pop(0)
            ceilings = [self.parameters.max_model_len - sequence.input_tokens]
            if sequence.asked_output_tokens is not None:
                ceilings.append(sequence.asked_output_tokens)
            if sequence.natural_end is not None:
                ceilings.append(sequence.natural_end.after_tokens)
            job = Job(sequence, len(self.jobs), min(ceilings), list(prompt_tokens(sequence)))
            self.jobs[sequence.key] = job
            self.waiting.append(job)
        if self.parameters.policy is SchedulingPolicy.PRIORITY:
            self.waiting.sort(key=lambda job: job.rank)

    def _drop_departed(self) -> None:
        for job in [*self.running, *self.waiting]:
            if self._departures.get(job.sequence.key, self._now + 1) <= self._now:
                (self.running if job in self.running else self.waiting).remove(job)
                self._give_back(job)
                self.dropped.append(job.sequence.key)

    def _schedule(self) -> dict[Job, int]:
        """Return the tokens that the next step computes, by job."""
        served: dict[Job, int] = {}
        preempted = False
        for job in list(self.running):
            if job not in self.running:
                continue
            budget = self.parameters.max_num_batched_tokens - sum(served.values())
            if budget <= 0:
                break
            count = min(self._bounded(len(job.tokens) - job.computed), budget)
            while job in self.running and len(self.free) < self._lacking(job, job.computed + count):
                preempted = True
                self._preempt(served)
            if job not in self.running:
                break
            self._extend(job, job.computed + count)
            served[job] = count
        if not preempted:
            self._admit(served)
        return served

    def _admit(self, served: dict[Job, int]) -> None:
        parameters, size = self.parameters, self.parameters.block_tokens
        while self.waiting and len(self.running) < parameters.max_num_seqs:
            budget = parameters.max_num_batched_tokens - sum(served.values())
            job = self.waiting[0]
            hits = self._hits(job)
            rest = self._bounded(len(job.tokens) - len(hits) * size)
            if budget <= 0 or (rest > budget and not parameters.chunked_prefill):
                break
            count = min(rest, budget)
            until = len(job.tokens) if parameters.scheduler_reserve_full_isl else len(hits) * size + count
            idle = [block for block in hits if not block.holders]
            spare = parameters.watermark_blocks if self.running else 0
            if -(-until // size) - len(hits) + len(idle) + spare > len(self.free):
                break
            self.waiting.pop(0)
            for block in idle:
                self.free.remove(block)
            for block in hits:
                block.holders += 1
            job.blocks, job.computed, job.decoding = hits, len(hits) * size, False
            self._extend(job, job.computed + count)
            self.running.append(job)
            job.started_at = self._now if job.started_at is None else job.started_at
            served[job] = count

    def _execute(self, served: dict[Job, int]) -> None:
        pieces = [(count, job.computed) for job, count in served.items() if not job.decoding]
        decoding = [job for job in served if job.decoding]
        work = StepWork(
            prefill_tokens=sum(count for count, _ in pieces),
            attention_pairs=sum(sum(before + place for place in range(1, count + 1)) for count, before in pieces),
            decoding_sequences=len(decoding),
            resident_tokens=sum(len(job.tokens) for job in decoding),
        )
        self._now += self.parameters.step_times.seconds(work)
        self.steps += 1
        for job, count in served.items():
            job.computed += count
        self._drop_departed()
        for job in served:
            if job in self.running and job.computed == len(job.tokens):
                self._produce(job)

    def _produce(self, job: Job) -> None:
        job.decoding = True
        job.produced += 1
        job.tokens.append(("out", job.sequence.key, job.produced))
        job.first_at = self._now if job.first_at is None else job.first_at
        if job.produced >= job.limit:
            job.ended_at = self._now
            self.running.remove(job)
            self._give_back(job)

    def _preempt(self, served: dict[Job, int]) -> None:
        by_priority = self.parameters.policy is SchedulingPolicy.PRIORITY
        victim = max(self.running, key=lambda job: job.rank) if by_priority else self.running[-1]
        self.running.remove(victim)
        served.pop(victim, None)
        for block in victim.blocks[victim.computed // self.parameters.block_tokens :]:
            self._forget(block)
        self._give_back(victim)
        victim.preempted_at.append(self._now)
        self.waiting.insert(0, victim)
        if by_priority:
            self.waiting.sort(key=lambda job: job.rank)

    def _bounded(self, tokens: int) -> int:
        threshold = self.parameters.long_prefill_token_threshold
        return min(tokens, threshold) if threshold else tokens

    def _lacking(self, job: Job, until: int) -> int:
        return max(-(-until // self.parameters.block_tokens) - len(job.blocks), 0)

    def _hits(self, job: Job) -> list[Block]:
        found: list[Block] = []
        size = self.parameters.block_tokens
        for end in range(size, len(job.tokens), size):
            blocks = self.cached.get(tuple(job.tokens[:end]), [])
            if not blocks:
                break
            found.append(blocks[0])
        return found

    def _extend(self, job: Job, until: int) -> None:
        size = self.parameters.block_tokens
        for _ in range(self._lacking(job, until)):
            block = self.free.pop(0)
            self._forget(block)
            block.holders = 1
            job.blocks.append(block)
        if self.parameters.prefix_caching:
            for index, block in enumerate(job.blocks[: until // size]):
                if block.content is None:
                    block.content = tuple(job.tokens[: (index + 1) * size])
                    self.cached.setdefault(block.content, []).append(block)

    def _forget(self, block: Block) -> None:
        if block.content is not None:
            self.cached[block.content].remove(block)
            block.content = None

    def _give_back(self, job: Job) -> None:
        for block in reversed(job.blocks):
            block.holders -= 1
            if not block.holders:
                self.free.append(block)
        job.blocks, job.computed = [], 0
