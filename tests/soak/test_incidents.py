"""The whole of the bursts beside batches, since the first minute of an idle fleet tells little of the next twenty."""

import pytest
from incident_runs import run_bursts
from incident_traffic import Bursts


@pytest.mark.soak
@pytest.mark.timeout(900)  # a minute and a half of CPU
def test_bursts_beside_batches_are_hardly_slower_than_alone_and_the_batches_are_done() -> None:
    outcome = run_bursts(Bursts())

    assert outcome.slowdown <= 1.2
    assert outcome.batch_done_share == 1.0
    assert outcome.beside.ledger.broken_invariants == ()
