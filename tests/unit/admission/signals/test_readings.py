"""Which readings can be true."""

import math

import pytest

from llmshed.admission.signals.readings import ReplicaReading


@pytest.mark.parametrize(
    ("reading", "plausible", "tells"),
    [
        (ReplicaReading(1.0), True, False),
        (ReplicaReading(1.0, queued_requests=0.0), True, True),
        (ReplicaReading(1.0, 3.0, 1.0, 12.0), True, True),
        (ReplicaReading(1.0, kv_used_ratio=1.05), True, True),
        (ReplicaReading(1.0, kv_used_ratio=1.06), False, True),
        (ReplicaReading(1.0, queued_requests=-1.0), False, True),
        (ReplicaReading(1.0, queued_requests=1e7), False, True),
        (ReplicaReading(1.0, 3.0, 0.5, math.nan), False, True),
        (ReplicaReading(1.0, 3.0, math.inf), False, True),
        (ReplicaReading(math.nan, 3.0), False, True),
        (ReplicaReading(math.inf, 3.0), False, True),
    ],
)
def test_a_reading_is_plausible_when_every_value_could_come_from_an_engine(
    reading: ReplicaReading, *, plausible: bool, tells: bool
) -> None:
    assert (reading.plausible, reading.tells) == (plausible, tells)
