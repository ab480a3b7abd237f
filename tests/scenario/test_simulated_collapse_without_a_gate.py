"""What happens to a TGI replica beyond its capacity when nothing stands in front of it but its own limits."""

from dataclasses import dataclass
from functools import cache
from random import Random

from llmshed.simulation.cost import StepWork
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import Ended, FirstToken
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.sequences import Sequence

REPLICA = ReplicaParameters()
BEGIN_SECONDS, END_SECONDS = 100.0, 600.0
"""The window in which is measured; before it the replica fills."""
CAPACITY_PER_SECOND = 4.0
"""Requests of the load below of which more than nine in ten still meet their objective."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Rates per second over the window, and the refusals of the whole run."""

    tokens: float
    good_requests: float
    refused: int


def ttft_objective(input_tokens: int) -> float:
    """Five times what a first token takes on an idle replica."""
    return 5 * REPLICA.step_times.seconds(StepWork(prefill_tokens=input_tokens))


@cache
def under(requests_per_second: float) -> Seen:
    """Poisson arrivals of prompts of 100 to 1,500 tokens with 20 to 300 tokens of output; nobody retries."""
    replica, draws = Scheduler(REPLICA), Random(3)  # noqa: S311 - a load, no secret
    sent: dict[int, tuple[float, int]] = {}
    first: dict[int, float] = {}
    ended: dict[int, Ended] = {}
    refused, at = 0, 0.0

    def advance(until: float) -> None:
        for result in replica.advance(until):
            match result:
                case FirstToken(key, when):
                    first[key] = when
                case Ended():
                    ended[result.key] = result
                case _:
                    pass

    while at < END_SECONDS:
        at += draws.expovariate(requests_per_second)
        key, input_tokens, output = len(sent), draws.randint(100, 1500), draws.randint(20, 300)
        sent[key] = at, input_tokens
        advance(at)
        if replica.take_permit(key):
            replica.submit(Sequence(key, input_tokens, output), at)
        else:
            refused += 1
    seconds = END_SECONDS - BEGIN_SECONDS
    done = [result for result in ended.values() if BEGIN_SECONDS <= result.at < END_SECONDS]
    good = [result for result in done if first[result.key] - sent[result.key][0] <= ttft_objective(sent[result.key][1])]
    return Seen(sum(result.output_tokens for result in done) / seconds, len(good) / seconds, refused)


def test_at_capacity_the_work_that_arrives_is_good_work() -> None:
    assert under(CAPACITY_PER_SECOND).good_requests > 0.9 * CAPACITY_PER_SECOND
    assert under(CAPACITY_PER_SECOND).refused == 0


def test_at_twice_the_capacity_the_replica_is_as_busy_as_ever() -> None:
    most = max(under(rate).tokens for rate in (CAPACITY_PER_SECOND, 5.0, 6.0))
    assert 0.97 * most < under(2 * CAPACITY_PER_SECOND).tokens < 1.03 * most


def test_at_twice_the_capacity_next_to_nothing_of_it_is_in_time() -> None:
    assert under(2 * CAPACITY_PER_SECOND).good_requests < 0.05 * under(CAPACITY_PER_SECOND).good_requests


def test_a_quarter_more_than_capacity_is_enough_for_that() -> None:
    # No request is refused yet: the line just grows up to the permits, and all who join wait through it.
    assert under(5.0).refused == 0
    assert under(5.0).good_requests < 0.2 * under(CAPACITY_PER_SECOND).good_requests


def test_refusing_beyond_the_permits_brings_nothing_back() -> None:
    assert under(3 * CAPACITY_PER_SECOND).refused > under(2 * CAPACITY_PER_SECOND).refused > 1000
    assert under(3 * CAPACITY_PER_SECOND).good_requests < 0.05 * under(CAPACITY_PER_SECOND).good_requests
