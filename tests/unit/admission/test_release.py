"""The release schedule against hand-made sums: prefill 1,000 tokens/s, decode 0.1 s a token."""

import pytest

from llmshed.admission.budget import Reservation
from llmshed.admission.ledger import Charge, Phase
from llmshed.admission.policy import ReplicaBudget
from llmshed.admission.release import OVERDUE_SECONDS, Release, prefill_ends, releases_by_charge, wait_seconds
from llmshed.admission.request import Lane

BUDGET = ReplicaBudget(96_000, 0.1, 64, prefill_tokens_per_second=1_000.0, decode_seconds_per_token=0.1)


def charge(key: int, input_tokens: int, ceiling: int, **changes: object) -> Charge:
    reservation = Reservation(input_tokens, ceiling, 0, 1)
    made = Charge(key, "acme", Lane.BULK, reservation, ceiling, dispatched_at=0.0)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def schedule(charges: list[Charge], budget: ReplicaBudget, now: float) -> list[Release]:
    return sorted(release for _, release in releases_by_charge(charges, budget, now))


def test_prefills_follow_each_other_and_decodes_run_side_by_side() -> None:
    releases = schedule([charge(1, 2_000, 10), charge(2, 1_000, 10)], BUDGET, now=0.0)
    assert [r.tokens for r in releases] == [2_010, 1_010]
    assert [r.at for r in releases] == pytest.approx([3.0, 4.0])


def test_a_first_token_replaces_the_prediction() -> None:
    seen = charge(1, 2_000, 10, first_token_at=0.5, phase=Phase.DECODE)
    assert schedule([seen], BUDGET, now=0.6) == [Release(1.5, 2_010, 1)]


def test_work_that_outlived_its_ceiling_is_expected_soon_not_in_the_past() -> None:
    late = charge(1, 0, 10, first_token_at=0.0, phase=Phase.DECODE)
    assert schedule([late], BUDGET, now=50.0) == [Release(50.0 + OVERDUE_SECONDS, 10, 1)]


def test_a_gone_clients_prefill_still_stands_in_the_way() -> None:
    gone = charge(1, 2_000, 10, phase=Phase.RELEASING, release_at=2.0)
    behind = charge(2, 1_000, 10)
    assert prefill_ends([gone, behind], BUDGET, now=0.0)[2] == pytest.approx(3.0)
    assert [r.at for r in schedule([gone, behind], BUDGET, now=0.0)] == pytest.approx([2.0, 4.0])


def test_answers_that_show_no_first_token_are_in_nobodys_way_once_their_prefill_is_over() -> None:
    whole = [charge(key, 1_000, 10, streamed=False, dispatched_at=10.0 * key) for key in (1, 2, 3)]
    assert prefill_ends(whole, BUDGET, now=35.0) == pytest.approx({1: 11.0, 2: 21.0, 3: 31.0})


def test_a_stream_without_its_first_token_is_still_in_its_prefill_and_holds_up_the_next() -> None:
    late = charge(1, 1_000, 10, dispatched_at=0.0)
    behind = charge(2, 1_000, 10, dispatched_at=20.0)
    assert prefill_ends([late, behind], BUDGET, now=30.0) == pytest.approx({1: 30.0, 2: 31.0})


def test_an_unknown_rate_is_assumed_slow() -> None:
    unknown = ReplicaBudget(96_000, 0.1, 64)
    assert schedule([charge(1, 1_000, 10)], unknown, 0.0)[0].at == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("tokens", "sequences", "wait"),
    [(0, 0, 0.0), (100, 0, 1.0), (101, 0, 3.0), (1, 2, 3.0), (300, 1, 3.0), (301, 0, None), (0, 3, None)],
)
def test_the_wait_ends_when_both_needs_are_met(tokens: int, sequences: int, wait: float | None) -> None:
    releases = [Release(11.0, 100, 1), Release(13.0, 200, 1)]
    assert wait_seconds(releases, tokens, sequences, now=10.0) == wait
