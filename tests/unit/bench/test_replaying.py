"""What a replay keeps of a run."""

import pytest
from replaying import Outcome, Sent, peak, quantile, replay

from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.scheduler import Scheduler

SECOND = StepTimes(step_seconds=1.0, seconds_per_prefill_token=0.0, seconds_per_decoding_sequence=0.0)


def test_requests_are_sent_at_their_instants_and_get_as_many_tokens_as_they_had() -> None:
    sent = [Sent(0.0, 10, 3), Sent(10.0, 10, 1)]
    outcomes = replay(Scheduler(ReplicaParameters(step_times=SECOND)), sent)
    assert outcomes == [Outcome(sent[0], 1.0, 3.0), Outcome(sent[1], 11.0, 11.0)]
    assert [(one.first_token_seconds, one.whole_seconds) for one in outcomes] == [(1.0, 3.0), (1.0, 1.0)]


def test_a_request_that_the_replica_does_not_take_ends_the_replay() -> None:
    with pytest.raises(ValueError, match=r"the replica refuses Sent\(at=0.0, input_tokens=10000"):
        replay(Scheduler(ReplicaParameters()), [Sent(0.0, 10_000, 3)])


def test_a_quantile_is_a_value_that_occurred() -> None:
    assert [quantile([4.0, 1.0, 3.0, 2.0], share) for share in (0.0, 0.25, 0.5, 0.51, 1.0)] == [1, 1, 2, 3, 4]


def test_the_peak_counts_what_is_open_at_once() -> None:
    assert peak([0.0, 1.0, 2.0], [1.0, 3.0, 4.0]) == 2
    assert peak([], []) == 0
