"""Loads on one simulated replica in virtual time, and how well everybody fared: what sweeps are made of."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from replaying import Sent, replay

from llmshed.simulation.limits import OutputPlan
from llmshed.simulation.model import ReplicaModel
from llmshed.simulation.results import Ended, FirstToken
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence

GENERATIONS = 3
"""Requests of each client in a closed loop; the first of them sets the loop going and is not looked at."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of request that runs to its ceiling, in tokens."""

    input_tokens: int
    output_tokens: int

    @property
    def reserved_tokens(self) -> int:
        """Return what admission reserves for one; no ceiling here is beyond a chunk of TGI, so nothing overruns."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Seen:
    """How the worst of all fared under a load, in seconds, and the rate at which prompts went through."""

    ttft_seconds: float
    tpot_seconds: float
    prompt_tokens_per_second: float


@dataclass(slots=True)
class _Loop:
    """Clients that send the next request when the last one ended."""

    model: ReplicaModel
    shape: Shape
    keys: "count[int]" = field(default_factory=count)
    outputs: dict[int, int] = field(default_factory=dict)
    sent_at: dict[int, float] = field(default_factory=dict)
    first_at: dict[int, float] = field(default_factory=dict)
    seen: list[tuple[float, float, float]] = field(default_factory=list)

    def send(self, input_tokens: int, output_tokens: int, now: float) -> None:
        key = next(self.keys)
        end = NaturalEnd(output_tokens, FinishReason.EOS)
        asked = Sequence(key, input_tokens, asked_output_tokens=output_tokens, natural_end=end)
        if not self.model.take_permit(key) or not isinstance(self.model.submit(asked, now), OutputPlan):
            raise ValueError(f"the replica refuses {self.shape}")
        self.outputs[key], self.sent_at[key] = output_tokens, now

    def step(self) -> int:
        """Go to the next change; return how many ended by it."""
        now = self.model.next_change_at
        if now is None:
            raise ValueError(f"the replica stands still under {self.shape}")
        ended = 0
        for result in self.model.advance(now):
            match result:
                case FirstToken(key, at):
                    self.first_at[key] = at
                case Ended(key=key, at=at):
                    ended += 1
                    first = self.first_at[key]
                    pace = (at - first) / max(self.outputs[key] - 1, 1)
                    self.seen.append((at, first - self.sent_at[key], pace))
                case _:
                    pass
        for _ in range(ended):
            self.send(self.shape.input_tokens, self.shape.output_tokens, now)
        return ended


def closed_loop(build_model: Callable[[], ReplicaModel], shape: Shape, clients: int) -> Seen:
    """Hold `clients` requests of one shape in flight until steady, and return how the worst fared.

    Each client begins with a prompt of one token and a part of an answer, the next one's longer than the last one's: so
    ends spread evenly over the time of an answer from the start, and no crowd of prompts has to pass first.

    Raises:
        ValueError: the replica does not take such requests, or fewer permits than clients.
    """
    loop = _Loop(build_model(), shape)
    for client in range(clients):
        loop.send(1, -(-shape.output_tokens * (client + 1) // clients), 0.0)
    ended = 0
    while ended < GENERATIONS * clients:
        ended += loop.step()
    begun_at = loop.seen[clients - 1][0]
    steady = loop.seen[clients:]
    seconds = steady[-1][0] - begun_at
    return Seen(
        ttft_seconds=max(ttft for _, ttft, _ in steady),
        tpot_seconds=max(tpot for _, _, tpot in steady),
        prompt_tokens_per_second=len(steady) * shape.input_tokens / seconds,
    )


def burst(build_model: Callable[[], ReplicaModel], shape: Shape, prompts: int) -> float:
    """Send prompts at once to an idle replica, and return the time to the last first token."""
    requests = [Sent(0.0, shape.input_tokens, shape.output_tokens)] * prompts
    return max(outcome.first_token_seconds for outcome in replay(build_model(), requests))
