"""True lengths of logged requests: seen ones as they are, and guesses that cannot be below what was seen."""

from typing import Any

import pytest

from fakes.logs import logged
from fakes.traces import seeded
from llmshed.workload.imputing import LoggedLengths, TrueLength


def lengths(*tokens: int, times: int = 20, **fields: Any) -> LoggedLengths:
    known = LoggedLengths(seeded())
    for one in tokens:
        for _ in range(times):
            known.observe(logged(0, output_tokens=one, **fields))
    return known


def test_a_finished_answer_has_the_length_that_was_seen() -> None:
    assert lengths(50).true_length(logged(0, output_tokens=17)) == TrueLength(17, imputed=False)


def test_a_client_that_left_its_stream_wanted_no_more() -> None:
    assert lengths(50).true_length(logged(0, "cancelled", output_tokens=9)) == TrueLength(9, imputed=False)


def test_an_answer_at_its_ceiling_would_have_gone_on_as_longer_ones_did() -> None:
    known = lengths(40, 90, ceiling_tokens=4096)
    cut = logged(0, output_tokens=64)
    known.observe(cut)
    length = known.true_length(cut)
    assert length is not None
    assert length.imputed
    assert length.tokens == pytest.approx(90, abs=1)


def test_without_a_longer_one_it_goes_on_by_a_token() -> None:
    known = lengths(40)
    assert known.true_length(logged(0, output_tokens=64)) == TrueLength(65, imputed=True)


def test_an_answer_that_failed_midway_is_longer_than_what_came() -> None:
    length = lengths(10, 50).true_length(logged(0, "failed", output_tokens=30, status=200))
    assert length is not None
    assert length.imputed
    assert length.tokens == pytest.approx(50, abs=1)


def test_a_refused_request_is_as_long_as_its_like() -> None:
    known = lengths(10, 30)
    for _ in range(100):
        known.observe(logged(0, output_tokens=900, prompt_tokens=(3000,), ceiling_tokens=1024))
    drawn = [known.true_length(logged(0, "refused")) for _ in range(200)]
    tokens = [length.tokens for length in drawn if length is not None and length.imputed]
    assert len(tokens) == 200
    assert set(tokens) <= {10, 30}
    assert 60 < tokens.count(10) < 140


def test_it_reaches_its_ceiling_as_often_as_its_like_do() -> None:
    known = lengths(20, times=60)
    for _ in range(40):
        known.observe(logged(0, output_tokens=64))  # the ceiling
    drawn = [known.true_length(logged(0, "refused")) for _ in range(500)]
    cut = sum(length is not None and length.tokens >= 64 for length in drawn)
    assert 150 < cut < 250  # 200 expected, 11 the standard deviation


def test_each_sequence_has_its_share() -> None:
    known = lengths(50)
    assert known.true_length(logged(0, copies=2, output_tokens=31)) == TrueLength(16, imputed=False)


def test_where_nothing_was_served_nothing_is_guessed() -> None:
    known = LoggedLengths(seeded())
    known.observe(logged(0, "refused"))
    known.observe(logged(0, output_tokens=None))
    assert known.true_length(logged(0, "refused")) is None
