"""Millions of requests on a virtual clock, and the ledger equals what lives at every look.

20 seeds, each another pool, another mix and another mood of clients and replicas: clients leave, replicas fail, fall
silent, go down, come back, are derated. Afterwards nothing is reserved, nobody waits and nothing is timed.
"""

import pytest

from fakes.restless import Mood, Restless

SEEDS = range(20)
REQUESTS_PER_SEED = 250_000


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", SEEDS)
def test_five_million_requests_leave_nothing_behind(seed: int) -> None:
    run = Restless(seed)
    run.serve(REQUESTS_PER_SEED)
    run.drain()
    print(run.told())  # noqa: T201 - read with -s


@pytest.mark.slow
def test_a_few_thousand_of_them_leave_nothing_behind() -> None:
    run = Restless(7)
    run.serve(4_000)
    assert run.mood in Mood
    run.drain()


@pytest.mark.parametrize("seed", [16, 23])
def test_replicas_that_go_and_never_read_leave_nothing_behind(seed: int) -> None:
    run = Restless(seed, trouble_chance=0.05, unread_chance=0.2)
    run.serve(120)
    run.drain()
    assert run.requests == 120


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(200))
def test_the_same_of_many_seeds(seed: int) -> None:
    run = Restless(seed, trouble_chance=0.01 * (1 + seed % 20), unread_chance=0.05 * (1 + seed % 7))
    run.serve(2_000)
    run.drain()
    assert run.requests == 2_000
