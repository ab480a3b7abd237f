"""The prompts of one replica that are let in and have no first token yet, and the rate that they show.

An engine works on prompts in the order of their dispatch. A stream shows when its prefill is over. An answer that is
not streamed shows nothing: its prefill ends when the measured rate says so, or earlier when a prompt behind it does.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from llmshed.admission.prefill.bulk import BulkCharge
from llmshed.admission.prefill.rate import MeasuredRate
from llmshed.admission.request import Lane

UNKNOWN_STEP_TOKENS = 2048
"""Prompt tokens of one engine step where no bound is known: vLLM's default, TGI's is larger."""


@dataclass(slots=True)
class Prompt:
    """A prompt on its way through an engine."""

    key: int
    lane: Lane
    tokens: int
    dispatched_at: float
    streamed: bool
    output_ceiling_tokens: int
    bulk: BulkCharge | None = None


class InFlight:
    """The prompts in the order of their dispatch, and their tokens.

    The rate is learnt in busy periods only: from the instant at which one engine step of prompts is in flight, half of
    the bound, until nothing is. Fewer fill no step, and what they would show is the fixed time of a step.

    Args:
        most_tokens: most tokens beside a prompt that is alone; None without a bound.
        rate: told what first tokens show.
    """

    __slots__ = ("_blurred", "_busy", "_prompts", "_since", "most_tokens", "rate", "tokens")

    def __init__(self, most_tokens: float | None, rate: MeasuredRate) -> None:
        """Start with nothing in flight."""
        self.most_tokens = most_tokens
        self.rate = rate
        self.tokens = 0
        self._prompts: dict[int, Prompt] = {}
        self._since = float("-inf")  # when the last prompt left the engine's prefill
        self._busy = False
        self._blurred = False  # whether the engine worked since then on what nobody saw ending

    def __len__(self) -> int:
        """Return the number of prompts in flight."""
        return len(self._prompts)

    def fits(self, tokens: int) -> bool:
        """Say whether a prompt has room beside what is in flight; one that is alone always has."""
        return self.most_tokens is None or not self._prompts or self.tokens + tokens <= self.most_tokens

    @property
    def overfull(self) -> bool:
        """Say whether more is in flight than the bound, since a prompt was let in alone or by bulk's floor."""
        return self.most_tokens is not None and self.tokens > self.most_tokens

    def add(self, prompt: Prompt) -> None:
        """Let a prompt in that is not in flight yet."""
        if prompt.key in self._prompts:
            raise ValueError(f"request {prompt.key} is already in flight")
        self._prompts[prompt.key] = prompt
        self.tokens += prompt.tokens
        if not self._busy:
            step_tokens = UNKNOWN_STEP_TOKENS if self.most_tokens is None else self.most_tokens / 2
            self._busy = self.tokens >= step_tokens

    def take_predicted(self, now: float) -> Iterator[tuple[Prompt, float]]:
        """Take out the unstreamed prompts whose prefill is over by now as predicted, each with its end."""
        while (end := self.next_predicted()) <= now:
            self._blurred = True
            yield self._leave(next(iter(self._prompts)), end), end

    def next_predicted(self) -> float:
        """Return when the prefill of an unstreamed head is over; infinity where none is at the head."""
        head = next(iter(self._prompts.values()), None)
        if head is None or head.streamed:
            return float("inf")
        return max(head.dispatched_at, self._since) + head.tokens / self.rate.tokens_per_second

    def first_token(self, key: int, now: float) -> list[Prompt]:
        """Take out a prompt that got its first token, after the unstreamed ones at the head, which were before it."""
        over: list[Prompt] = []
        while key in self._prompts:
            head = next(iter(self._prompts.values()))
            if head.streamed or head.key == key:
                break
            over.append(self._leave(head.key, self._since))
            self._blurred = True
        if key in self._prompts:
            busy, since, inflight_tokens = self._busy, self._since, self.tokens
            prompt = self._leave(key, now)
            # Told of the dispatch and the first token in one instant, as observing does, one saw no prefill.
            seen = prompt.streamed and now > prompt.dispatched_at
            if seen and busy and not self._blurred:
                self.rate.learn(prompt.tokens, now - max(prompt.dispatched_at, since), inflight_tokens)
            self._blurred = not seen
            over.append(prompt)
        return over

    def end(self, key: int, now: float) -> None:
        """Take out a prompt that ended without a first token; others are ignored."""
        if key in self._prompts:
            head = next(iter(self._prompts))
            self._leave(key, now if key == head else self._since)  # behind it the engine works on at the head
            self._blurred = True

    def unread(self, key: int) -> Prompt | None:
        """Take out a prompt that the replica never read; None when it is not in flight."""
        return self._leave(key, self._since) if key in self._prompts else None

    def ready_at(self, tokens: int) -> float | None:
        """Return when predicted ends alone make room for a prompt that does not fit; None when they never do."""
        left, count, at = self.tokens, len(self), self._since
        for prompt in self._prompts.values():
            if prompt.streamed:
                return None
            at = max(prompt.dispatched_at, at) + prompt.tokens / self.rate.tokens_per_second
            left -= prompt.tokens
            count -= 1
            if self.most_tokens is None or not count or left + tokens <= self.most_tokens:
                return at
        return None

    def seconds_until(self, ahead_tokens: int, tokens: int, now: float) -> float:
        """Return how long until a prompt behind that many others has room, at the measured rate."""
        if self.most_tokens is None:
            return 0.0
        before = self.tokens + ahead_tokens
        lack = min(before, before + tokens - self.most_tokens)
        if lack <= 0:
            return 0.0
        return max(0.0, lack / self.rate.tokens_per_second - self._head_seconds(now))

    def busy_seconds(self, now: float) -> float:
        """Return how long the engine still works on all of it, at the measured rate."""
        return max(0.0, self.tokens / self.rate.tokens_per_second - self._head_seconds(now))

    def check(self) -> list[str]:
        """Return the invariants that do not hold: the sum equals the recount, what is empty is not busy."""
        wrong = []
        tokens = sum(prompt.tokens for prompt in self._prompts.values())
        if tokens != self.tokens:
            wrong.append(f"{self.tokens} tokens are in flight, the prompts sum to {tokens}")
        if self._busy and not self._prompts:
            wrong.append("nothing is in flight, and the engine is called busy")
        return wrong

    def _leave(self, key: int, since: float) -> Prompt:
        prompt = self._prompts.pop(key)
        self.tokens -= prompt.tokens
        self._since = since
        self._busy = self._busy and bool(self._prompts)
        return prompt

    def _head_seconds(self, now: float) -> float:
        """Return how long the engine has worked on the head, at most as long as it is expected to."""
        head = next(iter(self._prompts.values()), None)
        if head is None:
            return 0.0
        return min(now - max(head.dispatched_at, self._since), head.tokens / self.rate.tokens_per_second)
