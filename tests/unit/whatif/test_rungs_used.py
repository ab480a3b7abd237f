"""Times on rungs, and whose answers they changed; by hand."""

from typing import Any

import pytest

from fakes.rungs import STOP_BULK, cap, ladder_of, policy_on, pool_on
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.verdict import Decision, Verdict
from llmshed.ladder.standing import Cause, Standing, Step
from llmshed.whatif.rungs_used import RungsUsed
from llmshed.whatif.standing import Standing as CountsAs
from llmshed.whatif.visits import Try, Visit
from llmshed.workload.request import TracedRequest

LADDER = ladder_of(STOP_BULK, cap(100))
GROUND = Standing("small@1", 0, None, (), 0, 0, 0)


def step(before: int, after: int) -> Step:
    return Step("main", before, after, Cause.CLIMBED if after > before else Cause.DESCENDED, GROUND)


def finished(*, good: bool, feasible: bool = True, degradations: tuple[str, ...] = ()) -> Try:
    """Return a try whose first token came within 1 s, or after 5."""
    counts = CountsAs(Lane.INTERACTIVE, PriorityClass.NORMAL, 10)
    given: dict[str, Any] = {"ttft_objective_seconds": 1.0, "tpot_objective_seconds": 1.0, "wanted_tokens": 20}
    visit = Visit(TracedRequest(0.0, 10, 10), "acme", counts, 1, feasible, first_arrived_at=0.0, **given)
    return Try(1, visit, 0.0, first_token_at=0.5 if good else 5.0, ended_at=6.0, degradations=degradations)


def test_time_goes_to_the_rung_that_was_in_force() -> None:
    used = RungsUsed(policy_on(pool_on(LADDER), pool_on(None, "other")))
    for at, one in ((60.0, step(0, 1)), (90.0, step(1, 2)), (200.0, step(2, 1)), (210.0, step(1, 0))):
        used.stepped(one, at)
    told = used.use(100.0, 300.0)
    assert told is not None
    (pool,) = told.pools
    assert (pool.pool, pool.ladder, pool.climbs) == ("main", "small@1", 2)
    assert pool.seconds_on_rung == (150.0, 40.0, 110.0)


def test_degraded_answers_count_apart() -> None:
    used = RungsUsed(policy_on(pool_on(LADDER)))
    used.finished(finished(good=True))
    used.finished(finished(good=True, degradations=("cap_output",)))
    used.finished(finished(good=True, degradations=("cap_output",)))
    used.finished(finished(good=False, degradations=("cap_output",)))
    used.finished(finished(good=True, feasible=False, degradations=("cap_output",)))
    for rung in ("r1", "r1", None):
        used.refused(Verdict(Decision.REFUSE, Reason.SHED_PRIORITY, rung=rung))
    told = used.use(10.0, 10.0)
    assert told is not None
    assert (told.degraded, told.good_degraded, told.refused) == (3, 2, {"r1": 2})
    assert told.goodput_undegraded_requests_per_second == pytest.approx(0.1)
    assert told.goodput_degraded_requests_per_second == pytest.approx(0.2)


def test_without_ladders_nothing_is_told() -> None:
    assert RungsUsed(policy_on(pool_on(None))).use(10.0, 10.0) is None
