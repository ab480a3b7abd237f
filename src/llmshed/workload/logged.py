"""One request as a decision log tells of it: what it asked for, how long it took, and how it ended."""

import math
from dataclasses import dataclass
from enum import StrEnum

from llmshed.admission.request import Intent, Lane, PriorityClass


class LoggedEnding(StrEnum):
    """How a logged request ended, in the log's own words (docs/decision-log.md)."""

    FINISHED = "finished"
    REFUSED = "refused"
    EVICTED = "evicted"
    CANCELLED = "cancelled"
    FAILED = "failed"


_BUSY_STATUSES = frozenset({429, 503})
"""What a request ends with that nobody served because there was no room, the engine's own refusal included."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One try of a request that came before admission.

    Args:
        line: line of the log that tells of it, from 1.
        time_seconds: wall clock at its arrival, in seconds since the epoch.
        total_seconds: arrival to its end.
        ending: how it ended.
        status: HTTP status of the answer; 0 when the client left before it got one.
        lane: where it was classified into.
        intent: intent in force; None where none was found.
        priority_class: class in force; None likewise.
        tenant: who asked; None without tenants.
        streamed: whether the answer is a stream.
        retry_count: tries before this one, as the client says; None when it says nothing.
        prompt_tokens: input tokens of each prompt, at least one prompt.
        copies: sequences of each prompt.
        asked_output_tokens: ceiling asked for, of each sequence; None when none was named.
        ceiling_tokens: ceiling in force, of each sequence; None where it was refused before one was found.
        output_tokens: tokens generated, of all sequences, as far as seen; None where nothing tells.
        retry_after_seconds: wait that the client was told; None without one.
        fingerprint: keyed hash of its body; None in lines from before there was one.
        session: keyed hash of the session; None without one.
        prefix_blocks: keyed hashes of the prompt's leading blocks, as numbers.
        ttft_seconds: arrival to first token; streams that got one only.
        tpot_seconds: mean time per token after the first; streams of two tokens or more only.
        replica: where it ran, or whose terms bound.
        config_version: configuration that it was decided under.
    """

    line: int
    time_seconds: float
    total_seconds: float
    ending: LoggedEnding
    status: int
    lane: Lane
    prompt_tokens: tuple[int, ...]
    intent: Intent | None = None
    priority_class: PriorityClass | None = None
    tenant: str | None = None
    streamed: bool = True
    retry_count: int | None = None
    copies: int = 1
    asked_output_tokens: int | None = None
    ceiling_tokens: int | None = None
    output_tokens: int | None = None
    retry_after_seconds: float | None = None
    fingerprint: str | None = None
    session: str | None = None
    prefix_blocks: tuple[int, ...] = ()
    ttft_seconds: float | None = None
    tpot_seconds: float | None = None
    replica: str | None = None
    config_version: str | None = None

    @property
    def ended_seconds(self) -> float:
        """Return the wall clock at its end."""
        return self.time_seconds + self.total_seconds

    @property
    def sequences(self) -> int:
        """Return how many sequences it would run as."""
        return len(self.prompt_tokens) * self.copies

    @property
    def input_tokens_each(self) -> int:
        """Return the input tokens of each sequence, in the mean where its prompts differ, rounded up; at least 1."""
        return max(1, math.ceil(sum(self.prompt_tokens) / len(self.prompt_tokens)))

    @property
    def output_tokens_each(self) -> int:
        """Return the output tokens of each sequence that were seen, in the mean, rounded up; 0 where none were."""
        return math.ceil((self.output_tokens or 0) / self.sequences)

    @property
    def was_refused(self) -> bool:
        """Say whether nobody served it for want of room, or because it is more than may ever be taken."""
        if self.ending in {LoggedEnding.REFUSED, LoggedEnding.EVICTED}:
            return True
        return self.ending is LoggedEnding.FAILED and self.status in _BUSY_STATUSES

    @property
    def first_sign_seconds(self) -> float | None:
        """Return arrival to what a client saw first of a finished answer: its first token, or all of one in a piece."""
        if self.ending is not LoggedEnding.FINISHED:
            return None
        return self.ttft_seconds if self.streamed else self.total_seconds

    def output_tokens_by(self, after_seconds: float) -> float:
        """Return about how many output tokens there were so long after its arrival.

        A stream's tokens come evenly between the first and the last; of an answer in one piece they are taken to come
        evenly from its arrival on, which makes them a little early.
        """
        whole = self.output_tokens or 0
        if after_seconds >= self.total_seconds:
            return whole
        first_at = self.ttft_seconds or 0.0
        if after_seconds < first_at or whole == 0:
            return 0.0
        if self.tpot_seconds is None:
            return whole * (after_seconds - first_at) / (self.total_seconds - first_at)
        return min(1 + (after_seconds - first_at) / self.tpot_seconds, whole) if self.tpot_seconds else whole
