"""One client's request on its way: the visit, and each of its tries."""

from dataclasses import dataclass, field

from llmshed.whatif.standing import Standing
from llmshed.workload.request import TracedRequest


@dataclass(slots=True)
class Visit:
    """A request of the trace, however often it is tried.

    Args:
        traced: what the trace holds.
        tenant: the tenant of the policy that it counts as.
        standing: where it counts.
        quartile: input quartile, 1 to 4.
        feasible: whether an idle replica could serve it within its objectives.
        ttft_objective_seconds: most time from the first arrival to the first token.
        tpot_objective_seconds: most mean time per token after the first.
        wanted_tokens: input and output of all its sequences as an idle replica gives them; 0 where it gives none.
        first_arrived_at: when it first came, in seconds.
        fingerprint: what all of its tries have in common, as a body has.
        tries: how often it has come.
        served: whether any of them got a first token.
    """

    traced: TracedRequest
    tenant: str
    standing: Standing
    quartile: int
    feasible: bool
    ttft_objective_seconds: float
    tpot_objective_seconds: float
    wanted_tokens: int
    first_arrived_at: float
    fingerprint: str = ""
    tries: int = 0
    served: bool = False

    @property
    def input_tokens(self) -> int:
        """Return the input tokens of all its sequences."""
        return self.traced.input_tokens * self.traced.copies


@dataclass(slots=True)
class Try:
    """One arrival of a visit at the gateway, under a key of its own as any HTTP request is.

    Args:
        key: key of the request for the gate.
        visit: whose try it is.
        arrived_at: when it came, in seconds.
        replica: where it was sent; None before that.
        dispatched_at: when; None before that.
        first_token_at: first token of its first sequence; None before that.
        ended_at: when its last sequence so far ended.
        output_tokens: output of its sequences that ended.
        slowest_tpot_seconds: greatest mean time per token of those; None while none had two tokens.
        open_sequences: first token of each sequence that runs, by its key; None before that.
        degradations: what rungs did to its answer.
    """

    key: int
    visit: Visit
    arrived_at: float
    replica: str | None = None
    dispatched_at: float | None = None
    first_token_at: float | None = None
    ended_at: float = 0.0
    output_tokens: int = 0
    slowest_tpot_seconds: float | None = None
    open_sequences: dict[int, float | None] = field(default_factory=dict)
    degradations: tuple[str, ...] = ()

    def note_first_token(self, sequence: int, at: float) -> bool:
        """Note a sequence's first token; say whether it is the first of all."""
        self.open_sequences[sequence] = at
        if self.first_token_at is not None:
            return False
        self.first_token_at = at
        return True

    def note_end(self, sequence: int, output_tokens: int, at: float) -> bool:
        """Note a sequence's end; say whether it was the last."""
        first_at = self.open_sequences.pop(sequence)
        self.ended_at = at
        self.output_tokens += output_tokens
        if first_at is not None and output_tokens > 1:
            pace = (at - first_at) / (output_tokens - 1)
            self.slowest_tpot_seconds = max(pace, self.slowest_tpot_seconds or 0.0)
        return not self.open_sequences

    @property
    def seen_at(self) -> float | None:
        """Return when its client saw something of the answer: the first token of a stream, or the end of a whole."""
        return self.first_token_at if self.visit.traced.streamed else self.ended_at

    @property
    def met_objectives(self) -> bool:
        """Say whether a try that finished makes its visit good, the time of earlier tries included.

        A whole answer has the time in which a stream that met both objectives would have ended.
        """
        visit = self.visit
        if self.first_token_at is None:
            return False
        if visit.traced.streamed:
            in_pace = (self.slowest_tpot_seconds or 0.0) <= visit.tpot_objective_seconds
            return in_pace and self.first_token_at - visit.first_arrived_at <= visit.ttft_objective_seconds
        tokens_each = self.output_tokens / visit.traced.copies
        allowed = visit.ttft_objective_seconds + max(tokens_each - 1, 0.0) * visit.tpot_objective_seconds
        return self.ended_at - visit.first_arrived_at <= allowed
