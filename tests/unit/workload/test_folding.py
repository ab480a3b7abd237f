"""Which tries are one request, and what of them stands for it."""

from collections.abc import Iterable
from typing import Any

import pytest

from fakes.logs import BEGAN, logged
from llmshed.workload.folding import LONGEST_CHAIN_SECONDS, RetryFolder
from llmshed.workload.logged import LoggedEnding, LoggedRequest


def folded(tries: Iterable[LoggedRequest]) -> list[LoggedRequest]:
    return list(RetryFolder().first_tries(tries))


def test_a_request_that_was_served_at_its_third_try_came_with_its_first_and_has_the_length_of_its_last() -> None:
    tries = [
        logged(0, "refused", fingerprint="f", retry_after_seconds=2.0),
        logged(3, fingerprint="other"),
        logged(4, "refused", fingerprint="f", retry_after_seconds=2.0),
        logged(9, fingerprint="f", output_tokens=33),
    ]
    folder = RetryFolder()
    first, other = folder.first_tries(tries)
    assert (first.time_seconds - BEGAN, first.ending, first.output_tokens) == (0, LoggedEnding.FINISHED, 33)
    assert first.line == tries[0].line
    assert other == tries[1]
    assert folder.folded == 2


def test_one_that_gave_up_is_one_refused_request() -> None:
    (one,) = folded(logged(at, "refused", fingerprint="f") for at in (0, 1, 2, 3))
    assert (one.time_seconds, one.was_refused) == (BEGAN, True)


@pytest.mark.parametrize(
    ("told", "after", "requests"), [(None, 59, 1), (None, 61, 2), (100.0, 199, 1), (100.0, 201, 2)]
)
def test_a_retry_comes_within_twice_the_wait_that_was_told_and_at_least_a_minute(
    told: float | None, after: float, requests: int
) -> None:
    refused = logged(0, "refused", fingerprint="f", retry_after_seconds=told)
    assert len(folded([refused, logged(after, fingerprint="f")])) == requests


@pytest.mark.parametrize(
    "other",
    [
        {"fingerprint": "g"},
        {"tenant": "other"},
        {"retry_count": 0},  # its client says that it is a first try
    ],
)
def test_another_request_is_no_retry(other: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"fingerprint": "f", **other}
    assert len(folded([logged(0, "refused", fingerprint="f"), logged(1, **fields)])) == 2


def test_a_client_that_counts_must_count_upwards() -> None:
    first, second = logged(0, "refused", fingerprint="f"), logged(1, "refused", fingerprint="f", retry_count=1)
    assert len(folded([first, second, logged(2, fingerprint="f", retry_count=2)])) == 1
    assert len(folded([first, second, logged(2, fingerprint="f", retry_count=1)])) == 2


def test_what_was_served_is_asked_again_as_a_new_request() -> None:
    assert len(folded([logged(0, fingerprint="f"), logged(2, fingerprint="f")])) == 2


def test_each_refused_request_takes_one_retry() -> None:
    same = {"fingerprint": "f"}
    tries = [logged(0, "refused", **same), logged(1, "refused", retry_count=0, **same)]
    requests = folded([*tries, logged(2, **same), logged(3, **same), logged(4, **same)])
    assert [one.time_seconds - BEGAN for one in requests] == [0, 1, 4]
    assert [one.was_refused for one in requests] == [False, False, False]


def test_a_retry_does_not_come_before_its_refusal() -> None:
    slow = logged(0, "refused", fingerprint="f", total_seconds=3.0)
    assert len(folded([slow, logged(2, fingerprint="f")])) == 2


def test_without_fingerprints_the_shape_of_a_request_stands_for_it() -> None:
    refused = logged(0, "refused", prefix_blocks=(1, 2), session="s")
    assert len(folded([refused, logged(1, prefix_blocks=(1, 2), session="s")])) == 1
    assert len(folded([refused, logged(1, prefix_blocks=(1, 3), session="s")])) == 2
    assert len(folded([refused, logged(1, prefix_blocks=(1, 2))])) == 2


def test_requests_stay_in_the_order_of_their_first_tries_and_none_is_lost() -> None:
    tries = [logged(at, "refused" if at % 3 else "finished", fingerprint=str(at % 7)) for at in range(0, 7000, 5)]
    folder = RetryFolder()
    requests = list(folder.first_tries(tries))
    assert [one.time_seconds for one in requests] == sorted(one.time_seconds for one in requests)
    assert len(requests) + folder.folded == len(tries)


def test_a_client_that_never_stops_is_a_new_request_every_hour_so_that_nothing_is_held_for_ever() -> None:
    requests = folded(logged(at, "refused", fingerprint="f") for at in range(0, 3 * int(LONGEST_CHAIN_SECONDS), 30))
    assert [one.time_seconds - BEGAN for one in requests] == [0, 3630, 7260]
