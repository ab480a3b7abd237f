import pytest

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.calibration.preempting import Preemptions


def read(total: float | None) -> ReplicaReading:
    return ReplicaReading(0.0, preemptions_total=total)


def test_the_rate_is_of_the_phase_and_survives_a_counter_that_begins_anew() -> None:
    preemptions = Preemptions()
    preemptions.read(read(100))
    preemptions.begin(60.0)
    for total in (103, 1, 2):
        preemptions.read(read(total))
    assert preemptions.per_minute(180.0) == pytest.approx((3 + 1 + 1) / 2)


def test_an_engine_that_does_not_tell_has_no_rate() -> None:
    preemptions = Preemptions()
    preemptions.begin(0.0)
    preemptions.read(read(None))
    assert preemptions.per_minute(60.0) is None
