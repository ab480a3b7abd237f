"""The release forecast against hand-made sums and a naive walk: prefill 1,000 tokens/s, decode 0.1 s a token."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmshed.admission.budget import Reservation
from llmshed.admission.estimate.forecast import REBUILD_SECONDS, ReleaseForecast
from llmshed.admission.estimate.outputs import OutputModel
from llmshed.admission.estimate.pace import DecodePace
from llmshed.admission.ledger import Charge, Phase
from llmshed.admission.policy import ReplicaBudget
from llmshed.admission.request import Lane

BUDGET = ReplicaBudget(96_000, 0.1, 64, prefill_tokens_per_second=1_000.0, decode_seconds_per_token=0.1)
BULK = Lane.BULK


def charge(key: int, input_tokens: int, ceiling: int, sequences: int = 1, **changes: object) -> Charge:
    reservation = Reservation(input_tokens, ceiling * sequences, 0, sequences)
    made = Charge(key, "acme", BULK, reservation, ceiling, dispatched_at=0.0)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def decoding(key: int, ceiling: int, sequences: int = 1, first_token_at: float = 0.0) -> Charge:
    return charge(key, 0, ceiling, sequences, first_token_at=first_token_at, phase=Phase.DECODE)


def built(charges: list[Charge], now: float, outputs: OutputModel | None = None) -> ReleaseForecast:
    forecast = ReleaseForecast()
    forecast.refresh(charges, BUDGET, outputs or OutputModel(), DecodePace(), now)
    return forecast


def test_while_nothing_is_learnt_the_ceilings_stand() -> None:
    """Prefills end at 2 and 3 s, ten tokens take one second: 2,010 free at 3 s, 1,010 at 4 s."""
    forecast = built([charge(1, 2_000, 10), charge(2, 1_000, 10)], now=0.0)
    waits = [forecast.seconds_until(lack, 0, now=0.0) for lack in (0, 1, 2_010, 2_011, 3_020)]
    assert waits == pytest.approx([0.0, 3.0, 3.0, 4.0, 4.0])
    assert forecast.seconds_until(3_021, 0, now=0.0) is None
    assert forecast.seconds_until(1, 2, now=0.0) == pytest.approx(4.0)
    assert forecast.seconds_until(0, 3, now=0.0) is None


def test_an_empty_replica_never_gives_more() -> None:
    assert built([], now=0.0).seconds_until(1, 0, now=0.0) is None
    assert built([], now=0.0).seconds_until(0, 1, now=0.0) is None
    assert built([], now=0.0).seconds_until(0, 0, now=0.0) == 0.0


def test_a_releasing_charge_comes_free_when_it_is_due() -> None:
    gone = charge(1, 2_000, 10, phase=Phase.RELEASING, release_at=1.5)
    assert built([gone], now=1.0).seconds_until(1, 0, now=1.0) == 0.5
    assert built([gone], now=2.0).seconds_until(1, 0, now=2.0) == 0.0


def test_learnt_lengths_are_spread_over_their_quantiles() -> None:
    """Lengths even over 0..200 tokens, so times even over 0..20 s: half of a hundred charges is free at 10 s."""
    outputs = OutputModel()
    drawn = random.Random(5)  # noqa: S311 - one seed, one test
    for _ in range(2_000):
        outputs.learn(BULK, drawn.randrange(1, 200), 200)
    forecast = built([decoding(key, 200) for key in range(100)], now=0.0, outputs=outputs)
    for part in (0.1, 0.25, 0.5, 0.75):
        assert forecast.seconds_until(part * 20_000, 0, now=0.0) == pytest.approx(part * 20, abs=1.2)


def test_the_last_lump_overshoots_the_need() -> None:
    """Ten answers of 0..200 tokens, 0..20 s: one token is there at the first end, on average at 20/11 s."""
    outputs = OutputModel()
    for length in [*range(200)] * 5:
        outputs.learn(BULK, length * 73 % 200, 200)
    few = built([decoding(key, 200) for key in range(10)], now=0.0, outputs=outputs)
    assert few.seconds_until(1, 0, now=0.0) == pytest.approx(20 / 11, abs=1.0)
    assert few.seconds_until(1_999, 0, now=0.0) == few.seconds_until(2_000, 0, now=0.0)
    assert few.seconds_until(2_001, 0, now=0.0) is None


def test_the_further_an_answer_is_the_sooner_it_ends_within_its_ceiling() -> None:
    outputs = OutputModel()
    for _ in range(200):
        outputs.learn(BULK, 100, 400)
    early = built([decoding(1, 400)], now=1.0, outputs=outputs).seconds_until(1, 0, now=1.0)
    late = built([decoding(1, 400)], now=8.0, outputs=outputs).seconds_until(1, 0, now=8.0)
    assert early == pytest.approx(9.0, abs=0.3)
    assert late == pytest.approx(2.0, abs=0.3)


def test_several_sequences_are_held_until_the_longest_ends() -> None:
    outputs = OutputModel()
    for _ in range(200):
        outputs.learn(BULK, 100, 400)
    assert built([decoding(1, 400, 8)], 0.0, outputs).seconds_until(0, 8, now=0.0) == pytest.approx(40.0)


def test_what_outlived_its_ceiling_is_expected_within_as_long_again() -> None:
    """100 tokens end at 10 s; at 12 s it is 2 s late and expected in 2 s, at 10.05 s in the time of one token."""
    assert built([decoding(1, 100)], now=12.0).seconds_until(1, 0, now=12.0) == pytest.approx(2.0)
    assert built([decoding(1, 100)], now=10.05).seconds_until(1, 0, now=10.05) == pytest.approx(0.1)


def test_the_work_ahead_comes_free_in_its_turn() -> None:
    """Two answers of 100 tokens, free at 10 and 30 s and held 10 s: a queue of 200 of which one lacks 300 in all.

    From 10 s 10 of what was taken again come back each second, and 20 from 30 s on: 100 at 10, 200 + 200 at 30 s.
    """
    forecast = built([decoding(1, 100), decoding(2, 100, first_token_at=20.0)], now=0.0)
    assert forecast.seconds_until(300, 0, now=0.0, ahead_tokens=200) == pytest.approx(30.0)
    assert forecast.seconds_until(190, 0, now=0.0, ahead_tokens=200) == pytest.approx(19.0)
    assert forecast.seconds_until(0, 3, now=0.0, ahead_sequences=2) == pytest.approx(30.0)


def test_between_rebuilds_what_was_freed_is_the_front_of_the_curve() -> None:
    running = [decoding(key, ceiling) for key, ceiling in ((1, 100), (2, 200), (3, 300))]
    forecast = built(running, now=0.0)
    forecast.freed(running[0])
    assert forecast.seconds_until(200, 1, now=0.05) == pytest.approx(19.95)
    forecast.took(charge(4, 0, 50))
    assert forecast.seconds_until(550, 0, now=0.05) == pytest.approx(29.95)  # 500 known, and 50 behind them
    assert forecast.seconds_until(551, 0, now=0.05) is None
    forecast.freed(charge(4, 0, 50))  # taken and freed between two rebuilds: as if it had never been
    assert forecast.seconds_until(501, 0, now=0.05) is None


def test_it_is_rebuilt_when_it_is_old_or_much_was_taken() -> None:
    outputs, pace = OutputModel(), DecodePace()
    running = [decoding(1, 100)]
    forecast = built(running, now=0.0)
    running.append(decoding(2, 20))
    forecast.took(running[1])
    forecast.refresh(running, BUDGET, outputs, pace, 0.05)
    assert forecast.seconds_until(1, 0, now=0.05) == pytest.approx(9.95)  # a fifth of what is known: not yet
    running.append(decoding(3, 30))
    forecast.took(running[2])
    forecast.refresh(running, BUDGET, outputs, pace, 0.05)
    assert forecast.seconds_until(1, 0, now=0.05) == pytest.approx(1.95)
    running.append(decoding(4, 10))
    forecast.took(running[3])
    forecast.refresh(running, BUDGET, outputs, pace, 0.05 + REBUILD_SECONDS)
    assert forecast.seconds_until(1, 0, now=0.15) == pytest.approx(0.85)


def test_with_many_charges_it_may_get_older() -> None:
    """A thousandth of a second for each of 200."""
    running = [decoding(key, 100) for key in range(200)]
    forecast = built(running, now=0.0)
    forecast.refresh([], BUDGET, OutputModel(), DecodePace(), 0.19)
    assert forecast.seconds_until(1, 0, now=0.19) is not None
    forecast.refresh([], BUDGET, OutputModel(), DecodePace(), 0.2)
    assert forecast.seconds_until(1, 0, now=0.2) is None


@settings(max_examples=80, deadline=None)
@given(
    ceilings=st.lists(st.integers(2, 60), min_size=1, max_size=12),
    steps=st.lists(st.tuples(st.booleans(), st.integers(1, 60)), max_size=12),
    lack=st.integers(1, 400),
)
def test_it_stays_right_between_rebuilds(ceilings: list[int], steps: list[tuple[bool, int]], lack: int) -> None:
    """Takes and frees within the age of a curve, where answers end in the order foreseen, against a naive walk.

    It tells the same until the need reaches what was taken since, and None just when that is not enough either.
    """
    known = [decoding(key, ceiling) for key, ceiling in enumerate(ceilings)]
    forecast, now = built(known, now=0.0), 0.0
    assert forecast.seconds_until(lack, 0, now) == approximately(naive_wait(known, lack, now))
    taken: list[Charge] = []
    for key, (takes, ceiling) in enumerate(steps, start=len(ceilings)):
        now += REBUILD_SECONDS / 20
        if takes:
            taken.append(decoding(key, ceiling, first_token_at=now))
            forecast.took(taken[-1])
        else:
            first = min(known or taken, key=lambda held: held.output_ceiling_tokens, default=None)
            if first is not None:
                (known or taken).remove(first)
                forecast.freed(first)
        told, naive = forecast.seconds_until(lack, 0, now), naive_wait(known, lack, now)
        if naive is not None:
            assert told == approximately(naive)
        assert (told is None) == (naive_wait(known + taken, lack, now) is None)


def approximately(seconds: float | None) -> object:
    return None if seconds is None else pytest.approx(seconds)


def naive_wait(running: list[Charge], lack: int, now: float) -> float | None:
    """Sort the ends at full ceilings and add up until there is enough; late ones as the module says."""
    ends = []
    for held in running:
        assert held.first_token_at is not None
        end = held.first_token_at + held.output_ceiling_tokens * 0.1
        ends.append((end if end > now else now + max(0.1, now - end), held.reservation.total_tokens))
    free = 0
    for end, tokens in sorted(ends):
        free += tokens
        if free >= lack:
            return end - now
    return None
