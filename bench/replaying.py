"""Replaying measured requests on a simulated replica, and what is kept of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from llmshed.simulation.limits import OutputPlan
from llmshed.simulation.model import ReplicaModel
from llmshed.simulation.results import Ended, FirstToken
from llmshed.simulation.sequences import FinishReason, NaturalEnd
from llmshed.simulation.sequences import Sequence as SimulatedSequence


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it was sent: arrival in seconds, tokens of its prompt, tokens of its answer."""

    at: float
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """When a request had its first and its last token; seconds since the run began."""

    sent: Sent
    first_at: float
    ended_at: float

    @property
    def first_token_seconds(self) -> float:
        """Return the time from arrival to first token."""
        return self.first_at - self.sent.at

    @property
    def whole_seconds(self) -> float:
        """Return the time from arrival to last token."""
        return self.ended_at - self.sent.at


def replay(model: ReplicaModel, requests: Iterable[Sent]) -> list[Outcome]:
    """Send requests to a replica at their instants, and return what came of them in the order of their ends.

    Each request asks for exactly as many tokens as its answer had.

    Raises:
        ValueError: the replica refuses a request.
    """
    sent: dict[int, Sent] = {}
    first: dict[int, float] = {}
    outcomes: list[Outcome] = []

    def advance(now: float) -> None:
        for result in model.advance(now):
            match result:
                case FirstToken(key, at):
                    first[key] = at
                case Ended(key=key, at=at):
                    outcomes.append(Outcome(sent[key], first[key], at))
                case _:
                    pass

    for key, request in enumerate(requests):
        while (due := model.next_change_at) is not None and due <= request.at:
            advance(due)
        advance(request.at)
        sent[key] = request
        end = NaturalEnd(request.output_tokens, FinishReason.EOS)
        asked = SimulatedSequence(key, request.input_tokens, request.output_tokens, natural_end=end)
        if not model.take_permit(key) or not isinstance(model.submit(asked, request.at), OutputPlan):
            raise ValueError(f"the replica refuses {request}")
    while (due := model.next_change_at) is not None:
        advance(due)
    return outcomes


def quantile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that at least this share of all does not exceed."""
    ranked = sorted(values)
    return ranked[max(ceil(share * len(ranked)) - 1, 0)]


def peak(starts: Sequence[float], ends: Sequence[float]) -> int:
    """Return the most intervals that were open at once; one that ends where another starts is no longer open."""
    steps = sorted([(at, 1) for at in starts] + [(at, -1) for at in ends])
    open_now = most = 0
    for _, step in steps:
        open_now += step
        most = max(most, open_now)
    return most
