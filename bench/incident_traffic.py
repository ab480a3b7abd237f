"""The traffic of two public incidents, made up by seed, and the clients of the first."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import merge
from random import Random

from llmshed.admission.request import Intent
from llmshed.whatif.visits import Visit
from llmshed.workload.clients import POLITE_JITTER_RATIO, ClientModel, Refusal, retry_wait_seconds
from llmshed.workload.request import TracedRequest


@dataclass(frozen=True, slots=True)
class Bursts:
    """Interactive bursts beside batches: llm-d-incubation/batch-gateway issue 491.

    Each burst is followed by a quiet time, and with each of the first ones a batch is sent in one instant. Prompts of
    300 to 2,000 tokens and 50 to 300 of answer, batches of 2,000 to 8,000 and 200 to 1,000, all uniform; each client
    asks for the most that its kind may have, since nobody knows the answer's length.

    Args:
        cycles: how many bursts.
        batches: how many of them come with a batch.
        batch_requests: requests of a batch.
        burst_seconds: length of a burst.
        quiet_seconds: length of the quiet time.
        burst_rate: interactive requests a second in a burst.
        quiet_rate: the same in between.
    """

    cycles: int = 6
    batches: int = 3
    batch_requests: int = 1000
    burst_seconds: float = 90.0
    quiet_seconds: float = 60.0
    burst_rate: float = 15.0
    quiet_rate: float = 1.0

    @property
    def seconds(self) -> float:
        """Return how long interactive requests come."""
        return self.cycles * (self.burst_seconds + self.quiet_seconds)

    def interactive(self) -> Iterator[TracedRequest]:
        """Yield the interactive requests, at Poisson times."""
        rng = Random("incidents/interactive")  # noqa: S311 - traffic is made up, nothing is kept secret
        for cycle in range(self.cycles):
            begin = cycle * (self.burst_seconds + self.quiet_seconds)
            yield from interactive(rng, begin, begin + self.burst_seconds, self.burst_rate)
            quiet_at = begin + self.burst_seconds
            yield from interactive(rng, quiet_at, quiet_at + self.quiet_seconds, self.quiet_rate)

    def batch(self) -> Iterator[TracedRequest]:
        """Yield the requests of the batches."""
        rng = Random("incidents/batch")  # noqa: S311 - as above
        for batch in range(self.batches):
            at = batch * (self.burst_seconds + self.quiet_seconds)
            for _ in range(self.batch_requests):
                tokens, answer = rng.randint(2000, 8000), rng.randint(200, 1000)
                yield TracedRequest(at, tokens, answer, asked_output_tokens=1000, intent=Intent.BULK)

    def both(self) -> Iterator[TracedRequest]:
        """Yield both in the order of their arrival."""
        return merge(self.interactive(), self.batch(), key=lambda one: one.at_seconds)


def interactive(rng: Random, begin: float, end: float, rate: float) -> Iterator[TracedRequest]:
    """Yield interactive requests between two instants, at Poisson times of a rate a second."""
    at = begin
    while (at := at + rng.expovariate(rate)) < end:
        yield TracedRequest(at, rng.randint(300, 2000), rng.randint(50, 300), 300, intent=Intent.INTERACTIVE)


def incident_clients(visit: Visit, refusal: Refusal, rng: Random) -> float | None:
    """Let clients honour Retry-After: interactive ones try a few times, those of a batch for as long as it takes."""
    if visit.traced.intent is Intent.INTERACTIVE:
        return retry_wait_seconds(ClientModel.POLITE, refusal, visit.tries - 1, rng)
    if refusal.status not in {429, 503}:
        return None
    told = refusal.retry_after_seconds
    return (1.0 if told is None else told) * rng.uniform(1.0, 1.0 + POLITE_JITTER_RATIO)


@dataclass(frozen=True, slots=True)
class Surge:
    """Calm, then twice what the replicas carry, then calm: llm-d/llm-d-router issue 2295.

    Args:
        calm_rate: interactive requests a second before and after.
        surge_rate: the same in between.
        calm_seconds: how long the calm lasts, each time.
        surge_seconds: how long the surge lasts.
    """

    calm_rate: float
    surge_rate: float
    calm_seconds: float = 300.0
    surge_seconds: float = 600.0

    @property
    def surge_ends_at(self) -> float:
        """Return when the surge is over."""
        return self.calm_seconds + self.surge_seconds

    def requests(self) -> Iterator[TracedRequest]:
        """Yield the requests in the order of their arrival; those after the surge are those before it once more."""
        yield from self._calm()
        rng = Random("incidents/surge")  # noqa: S311 - as above
        yield from interactive(rng, self.calm_seconds, self.surge_ends_at, self.surge_rate)
        for one in self._calm():
            yield replace(one, at_seconds=one.at_seconds + self.surge_ends_at)

    def _calm(self) -> Iterator[TracedRequest]:
        rng = Random("incidents/calm")  # noqa: S311 - as above
        return interactive(rng, 0.0, self.calm_seconds, self.calm_rate)
