"""The reason table against the source texts: 413 is permanent, 429 contended, 503 nobody there to serve."""

import pytest

from llmshed.admission.reasons import REASON_TABLE, ErrorKind, Reason, Retry


def test_every_reason_has_its_row() -> None:
    assert set(REASON_TABLE) == set(Reason)


@pytest.mark.parametrize("reason", Reason)
def test_a_status_means_one_thing(reason: Reason) -> None:
    row = reason.row
    match row.status:
        case 413:
            assert row.retry is Retry.NEVER
        case 429:
            assert (row.kind, row.retry) == (ErrorKind.RATE, Retry.LATER)
        case 503:
            assert (row.kind, row.retry) == (ErrorKind.SERVER, Retry.LATER)
        case 500 | 502 | 504:
            assert (row.kind, row.retry) == (ErrorKind.SERVER, Retry.UNSAFE)
        case other:
            assert 400 <= other < 500
            assert row.retry is Retry.NEVER
    assert row.meaning[0].islower()
    assert not row.meaning.endswith(".")


@pytest.mark.parametrize(
    ("word", "status"),
    [("context_limit", 413), ("token_budget_exhausted", 429), ("deadline_infeasible", 429), ("no_replica", 503)],
)
def test_the_words_of_the_source_text(word: str, status: int) -> None:
    assert Reason(word).row.status == status
