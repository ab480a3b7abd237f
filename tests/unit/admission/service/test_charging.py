"""What a verdict charges."""

import pytest

from fakes.door import door, request
from llmshed.admission.request import Lane
from llmshed.admission.service.charging import charge_of, rank_of, reservation_of
from llmshed.admission.verdict import Decision, Verdict


def test_an_admitted_request_is_charged_with_all_that_its_verdict_names() -> None:
    asked = request(7, 400, 100, streamed=False)
    verdict = door().assess(asked, 0.0)
    charge = charge_of(asked, verdict, 3.0)

    assert (charge.key, charge.tenant, charge.lane, charge.dispatched_at) == (7, "acme", Lane.INTERACTIVE, 3.0)
    assert (charge.reservation, charge.output_ceiling_tokens, charge.streamed) == (reservation_of(verdict), 100, False)
    assert charge.reservation.total_tokens == 500
    assert rank_of(verdict) == 1


def test_a_verdict_that_looked_at_no_replica_charges_nothing() -> None:
    bare = Verdict(Decision.ADMIT)
    for ask in (reservation_of, rank_of):
        with pytest.raises(ValueError, match="a verdict that charges names"):
            ask(bare)
    with pytest.raises(ValueError, match="lane"):
        charge_of(request(1), bare, 0.0)
