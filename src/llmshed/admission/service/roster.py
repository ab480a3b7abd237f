"""Which pools and replicas there are, and by which numbers of the policy in force they serve."""

from llmshed.admission.policy import AdmissionPolicy, ReplicaBudget, ReplicaSpec
from llmshed.admission.request import Lane
from llmshed.admission.service.pool import Pool
from llmshed.admission.service.replica import AwaitedReplica


class Roster:
    """The pools by name, each with its replicas, and all replicas by name.

    A pool that left the policy is kept while replicas of it are known, since what runs there has yet to end.
    """

    def __init__(self, policy: AdmissionPolicy) -> None:
        """Start with the pools of a policy and no replicas."""
        self._policy = policy
        self.pools = {pool.name: Pool(pool.name) for pool in policy.pools}
        self.replicas: dict[str, AwaitedReplica] = {}

    def pool_of(self, replica: str) -> Pool:
        """Return the pool of a replica that is known."""
        return self.pools[self.replicas[replica].spec.pool]

    def where_waits(self, key: int) -> Pool | None:
        """Return the pool in which a request waits; None when it waits nowhere."""
        for pool in self.pools.values():
            if key in pool:
                return pool
        return None

    def holds(self, key: int) -> bool:
        """Say whether a request is known here: charged to a replica, by one that is gone too, or waiting."""
        return self.where_waits(key) is not None or any(key in replica.ledger for replica in self.replicas.values())

    def serving(self, model: str, lane: Lane) -> list[Pool]:
        """Return the pools that take a lane of a model."""
        return [self.pools[pool.name] for pool in self._policy.pools_of(model, lane) if pool.name in self.pools]

    def come_up(self, spec: ReplicaSpec, now: float) -> None:
        """Let a replica serve, with these numbers; running charges stay as they are."""
        known = self.replicas.get(spec.name)
        pool = self.pools.setdefault(spec.pool, Pool(spec.pool))
        if known is not None and known.spec.pool != spec.pool:
            # It was removed from another pool, where something still runs.
            pool.replicas[spec.name] = self.pool_of(spec.name).replicas.pop(spec.name)
            self._drop_empty()
        if known is None:
            made = AwaitedReplica(
                spec, shared=self._shared(spec.pool), engine_share_seconds=self._engine_share_seconds, now=now
            )
            self.replicas[spec.name] = pool.replicas[spec.name] = made
        else:
            more_tokens = spec.budget.safe_budget_tokens - known.budget.safe_budget_tokens
            pool.learnt.ghosts.came_free(spec.name, more_tokens)
            known.come_up(spec)
            self._renew(known, spec.budget, now)
        pool.came_up(spec.name)

    def forget(self, name: str) -> None:
        """Drop a replica on which nothing is charged any more and for which nobody waits."""
        pool = self.pool_of(name)
        pool.learnt.ghosts.forget(name)
        del pool.replicas[name]
        del self.replicas[name]
        self._drop_empty()

    def change_budget(self, name: str, budget: ReplicaBudget, now: float) -> None:
        """Let a replica lend something else from now on; nothing that runs is evicted."""
        replica, pool = self.replicas[name], self.pool_of(name)
        pool.learnt.ghosts.came_free(name, budget.safe_budget_tokens - replica.budget.safe_budget_tokens)
        self._renew(replica, budget, now)
        pool.changed = True

    def change_policy(self, policy: AdmissionPolicy, now: float) -> None:
        """Serve by another policy; pools that it no longer names go when they are empty."""
        self._policy = policy
        for pool in policy.pools:
            self.pools.setdefault(pool.name, Pool(pool.name))
        self._drop_empty()
        for replica in self.replicas.values():
            self._renew(replica, replica.budget, now)
        for known in self.pools.values():
            known.changed = True

    def _drop_empty(self) -> None:
        """Drop the pools that the policy does not name and that have no replica."""
        named = {pool.name for pool in self._policy.pools}
        for name in [name for name, pool in self.pools.items() if name not in named and not pool.replicas]:
            del self.pools[name]

    def _renew(self, replica: AwaitedReplica, budget: ReplicaBudget, now: float) -> None:
        shared = self._shared(replica.spec.pool)
        replica.renew(budget, shared=shared, engine_share_seconds=self._engine_share_seconds, now=now)

    def _shared(self, pool_name: str) -> bool:
        return any(pool.shared for pool in self._policy.pools if pool.name == pool_name)

    @property
    def _engine_share_seconds(self) -> float:
        return self._policy.lanes[Lane.INTERACTIVE].engine_share_seconds
