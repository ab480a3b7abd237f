"""What the core tells of itself beside its sums."""

from fakes.door import door, request, spec
from llmshed.admission.echo import Arrival
from llmshed.admission.events import Arrived
from llmshed.admission.policy import PoolPolicy
from llmshed.admission.request import Lane
from llmshed.admission.state import ControllerState


def test_amplification_is_all_arrivals_over_the_first_ones() -> None:
    arrivals = {Arrival.FIRST: 4, Arrival.EARLY: 3, Arrival.DECLARED: 1}
    assert ControllerState((), draining=False, live_requests=0, arrivals=arrivals).amplification == 2.0


def test_nothing_is_amplified_while_nobody_came() -> None:
    assert ControllerState((), draining=False, live_requests=0).amplification == 1.0
    assert door(spec()).state(0.0).amplification == 1.0


def test_a_declared_repeat_amplifies() -> None:
    core = door(spec())
    core.handle(Arrived(request(1)), 0.0)
    core.handle(Arrived(request(2, declared_repeats=1)), 0.0)
    assert core.state(0.0).amplification == 2.0


def test_cap_and_floor_are_told_where_the_lanes_meet_and_nowhere_else() -> None:
    shared = door(spec()).state(0.0).replicas[0]
    assert (shared.bulk_prefill_cap_ratio, shared.bulk_prefill_floor_ratio) == (0.3, 0.05)
    alone = door(spec(), pools=(PoolPolicy("main", "m", frozenset(), frozenset({Lane.BULK})),))
    (replica,) = alone.state(0.0).replicas
    assert replica.bulk_prefill_cap_ratio is replica.bulk_prefill_floor_ratio is None
