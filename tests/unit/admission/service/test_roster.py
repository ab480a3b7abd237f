"""Pools and replicas as they come, change and go."""

from fakes.door import BOTH_LANES, policy, spec
from llmshed.admission.budget import Reservation
from llmshed.admission.policy import PoolPolicy, ReplicaBudget
from llmshed.admission.request import Lane
from llmshed.admission.service.roster import Roster

BULK_ONLY = PoolPolicy("main", "m", frozenset({"alias"}), frozenset({Lane.BULK}))
OTHER = PoolPolicy("other", "n", frozenset(), BOTH_LANES)


def test_a_pool_serves_the_lanes_and_models_of_the_policy_in_force() -> None:
    roster = Roster(policy())
    assert [pool.name for pool in roster.serving("alias", Lane.INTERACTIVE)] == ["main"]
    assert roster.serving("n", Lane.BULK) == []

    roster.change_policy(policy(pools=(BULK_ONLY, OTHER)), 1.0)
    assert roster.serving("m", Lane.INTERACTIVE) == []
    assert [pool.name for pool in roster.serving("n", Lane.BULK)] == ["other"]


def test_replicas_are_shared_as_their_pool_is_and_learn_of_a_change() -> None:
    roster = Roster(policy())
    roster.come_up(spec(), 0.0)
    assert roster.replicas["r1"].shared

    roster.change_policy(policy(pools=(BULK_ONLY,)), 1.0)
    assert not roster.replicas["r1"].shared


def test_a_pool_that_the_policy_dropped_goes_with_its_last_replica() -> None:
    roster = Roster(policy())
    roster.come_up(spec(), 0.0)
    roster.change_policy(policy(pools=(OTHER,)), 1.0)
    assert set(roster.pools) == {"main", "other"}

    roster.forget("r1")
    assert (set(roster.pools), dict(roster.replicas)) == ({"other"}, {})


def test_a_budget_that_grows_may_let_somebody_start() -> None:
    roster = Roster(policy())
    roster.come_up(spec(), 0.0)
    pool = roster.pool_of("r1")
    pool.changed = False

    roster.change_budget("r1", ReplicaBudget(200_000, 0.1, 64), 1.0)
    assert (pool.changed, roster.replicas["r1"].free_tokens) == (True, 180_000)


def test_a_replica_that_comes_up_in_another_pool_moves_there_with_what_still_runs() -> None:
    roster = Roster(policy(pools=(BULK_ONLY, OTHER)))
    roster.come_up(spec(), 0.0)
    replica = roster.replicas["r1"]
    roster.come_up(spec(pool="other"), 1.0)
    assert roster.replicas == {"r1": replica}
    assert {name: list(pool.replicas) for name, pool in roster.pools.items()} == {"main": [], "other": ["r1"]}
    roster.forget("r1")
    assert list(roster.pools["other"].replicas) == []


def test_a_replica_that_comes_up_again_with_other_numbers_tells_ghosts_what_that_frees() -> None:
    """What lacks 10,000 tokens has them when the budget grows by as many, whichever event tells of it."""
    for told_by in ("up", "changed"):
        roster = Roster(policy())
        roster.come_up(spec(gross_ceiling_tokens=10_000, guard_band_ratio=0.0), 0.0)
        learnt = roster.pool_of("r1").learnt
        learnt.ghosts.follow(1, 10.0, 10.0, Reservation(19_000, 1_000, 0, 1), 0.0)
        learnt.advance(0.0)
        grown = spec(gross_ceiling_tokens=20_000, guard_band_ratio=0.0)
        if told_by == "up":
            roster.come_up(grown, 1.0)
        else:
            roster.change_budget("r1", grown.budget, 1.0)
        learnt.advance(1.0)
        assert learnt.ghosts.fitted == 1, told_by
