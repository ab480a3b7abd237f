"""Lines in the order of their ends become requests in the order of their arrivals, in bounded memory."""

from collections import Counter
from collections.abc import Iterator
from random import Random

from fakes.logs import BEGAN, logged
from llmshed.workload.logged import LoggedRequest
from llmshed.workload.ordering import HELD_SECONDS, by_arrival


def test_who_ended_first_and_came_last_is_put_in_his_place() -> None:
    rng = Random(1)  # noqa: S311 - one seed, one log
    tries = [logged(rng.uniform(0, 20_000), total_seconds=rng.uniform(0, HELD_SECONDS)) for _ in range(3000)]
    skipped: Counter[str] = Counter()
    ordered = list(by_arrival(sorted(tries, key=lambda one: one.ended_seconds), skipped))
    assert ordered == sorted(tries, key=lambda one: (one.time_seconds, one.line))
    assert not skipped


def test_those_of_one_instant_stand_by_their_lines() -> None:
    tries = [logged(5, line=7), logged(5, line=3), logged(5, line=5)]
    assert [one.line for one in by_arrival(tries, Counter())] == [3, 5, 7]


def test_no_more_than_an_hour_is_held() -> None:
    taken = 0

    def endless() -> Iterator[LoggedRequest]:
        nonlocal taken
        while True:
            yield logged(taken)  # one a second
            taken += 1

    first = next(by_arrival(endless(), Counter()))
    assert first.time_seconds == BEGAN
    assert taken <= HELD_SECONDS + 2


def test_a_longer_request_is_left_out_and_counted() -> None:
    skipped: Counter[str] = Counter()
    kept = list(by_arrival([logged(0), logged(1, total_seconds=HELD_SECONDS + 1)], skipped))
    assert [one.time_seconds for one in kept] == [BEGAN]
    assert dict(skipped) == {"a request of more than 3600 s": 1}


def test_no_more_than_so_many_are_held() -> None:
    tries = [logged(at) for at in (3, 1, 2, 5, 4)]
    ordered = [one.time_seconds - BEGAN for one in by_arrival(tries, Counter(), most_held=2)]
    assert ordered == [1, 2, 3, 4, 5]
    late = [one.time_seconds - BEGAN for one in by_arrival([*tries, logged(0)], Counter(), most_held=2)]
    assert late == [1, 2, 3, 0, 4, 5]
