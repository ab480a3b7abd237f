"""What makes a replica count as down, and what never does."""

from llmshed.gateway.replicas.health import HARD_FAILURES, ReplicaHealth


def test_refused_connections_in_a_row_make_a_replica_down_even_the_last() -> None:
    health = ReplicaHealth()
    for _ in range(HARD_FAILURES - 1):
        health.refused()
        assert health.suspected
        assert not health.is_down(is_last=True)
    health.refused()
    assert health.is_down(is_last=True)
    assert health.is_down(is_last=False)


def test_an_answer_ends_every_suspicion() -> None:
    health = ReplicaHealth()
    for _ in range(HARD_FAILURES):
        health.refused()
        health.complained()
    health.answered(7.0)
    assert not health.suspected
    assert not health.is_down(is_last=False)
    assert health.answered_at == 7.0


def test_slowness_never_makes_a_replica_down() -> None:
    health = ReplicaHealth()
    for _ in range(100):
        health.slow()
    assert not health.is_down(is_last=False)


def test_a_slow_answer_shows_that_connections_are_taken() -> None:
    health = ReplicaHealth()
    health.refused()
    health.refused()
    health.slow()
    health.refused()
    assert not health.is_down(is_last=False)


def test_the_last_replica_of_a_pool_stays_though_it_calls_itself_ill() -> None:
    health = ReplicaHealth()
    for _ in range(HARD_FAILURES):
        health.complained()
    assert health.is_down(is_last=False)
    assert not health.is_down(is_last=True)
