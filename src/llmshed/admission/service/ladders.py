"""The ladders of all pools: which there are by the policy in force, and what their windows read of their pools."""

from collections.abc import Mapping
from functools import partial
from math import inf

from llmshed.admission.policy import AdmissionPolicy
from llmshed.admission.request import CLASSES, Lane
from llmshed.admission.service.laddering import Laddering
from llmshed.admission.service.pool import QUEUED_LANES, Pool
from llmshed.ladder.reading import PoolReading
from llmshed.ladder.standing import Hold, Step


class Ladders:
    """The ladders by the names of their pools, each of which knows its own; `pools` come and go with the policy.

    A policy is told after the pools of it are there.

    Attributes:
        in_force: whether a rung is in force anywhere, so that a decision without one looks no further.
        due_at: when the next window or hold ends; infinite without ladders.
    """

    def __init__(self, pools: Mapping[str, Pool], policy: AdmissionPolicy, now: float) -> None:
        """Start all ladders of a policy on the ground."""
        self._pools = pools
        self._by_pool: dict[str, Laddering] = {}
        self.in_force = False
        self.due_at = inf
        self.change_policy(policy, now)

    def of(self, pool: str) -> Laddering | None:
        """Return the ladder of a pool; None where it has none."""
        return self._by_pool.get(pool)

    def change_policy(self, policy: AdmissionPolicy, now: float) -> list[Step]:
        """Put the ladders of another policy in force; a pool that loses its ladder is on the ground at once."""
        wanted = {pool.name: (pool, pool.ladder) for pool in policy.pools if pool.ladder is not None}
        steps: list[Step] = []
        for name in [name for name in self._by_pool if name not in wanted]:
            steps += self._by_pool.pop(name).dropped()
            if name in self._pools:
                self._pools[name].laddering = None
        objective = objective_seconds(policy)
        for name, (pool, ladder) in wanted.items():
            known = self._by_pool.get(name)
            if known is None:
                known = self._by_pool[name] = Laddering(pool, ladder, objective, now)
            else:
                steps += known.renew(pool, ladder, objective, now)
            self._pools[name].laddering = known
        self._note()
        return steps

    def hold(self, pool: str, hold: Hold, now: float) -> list[Step]:
        """Hold a rung; the pool has a ladder with that rung."""
        steps = self._by_pool[pool].hold(hold, now)
        self._note()
        return steps

    def release(self, pool: str) -> list[Step]:
        """Give up what is held on a pool, if anything is."""
        known = self._by_pool.get(pool)
        steps = [] if known is None else known.release()
        self._note()
        return steps

    def advance(self, now: float) -> list[Step]:
        """End the windows and holds that are due."""
        steps: list[Step] = []
        for name, known in self._by_pool.items():
            if known.next_wakeup() <= now:
                steps += known.advance(now, partial(reading_of, self._pools[name], now))
        self._note()
        return steps

    def check(self) -> list[str]:
        """Return the invariants that do not hold: those of each ladder, and that its pool knows it."""
        wrong = [text for known in self._by_pool.values() for text in known.check()]
        strangers = [name for name, pool in self._pools.items() if pool.laddering is not self.of(name)]
        wrong += [f"pool {name} does not know its ladder" for name in strangers]
        if self.in_force != any(known.measures is not None for known in self._by_pool.values()):
            wrong.append("whether a rung is in force anywhere is not what pools say")
        if self.due_at != self._next_end():
            wrong.append(f"ladders are looked at at {self.due_at:g} s, and the next end is at {self._next_end():g} s")
        return wrong

    def _note(self) -> None:
        self.in_force = any(known.measures is not None for known in self._by_pool.values())
        self.due_at = self._next_end()

    def _next_end(self) -> float:
        return min((known.next_wakeup() for known in self._by_pool.values()), default=inf)


def objective_seconds(policy: AdmissionPolicy) -> float:
    """Return the queue delay objective of ladders that name none: the queue's share of interactive work's TTFT."""
    lane = policy.lanes[Lane.INTERACTIVE]
    return lane.queue_share_ratio * lane.ttft_objective_seconds


def reading_of(pool: Pool, now: float) -> PoolReading:
    """Return what a pool shows now; replicas that are down count as lost, and tell nothing."""
    up = [replica for replica in pool if replica.up]
    kv = [replica.kv_used_ratio for replica in up if replica.kv_used_ratio is not None]
    preemptions = [r.preemptions_over_budget for r in up if r.preemptions_over_budget is not None]
    return PoolReading(
        waiting_ages_seconds=tuple(now - waiting.joined_at for waiting in pool.queues[Lane.INTERACTIVE]),
        queued_prefill_tokens=sum(pool.queues[lane].input_tokens_of(cls) for lane in QUEUED_LANES for cls in CLASSES),
        kv_used_ratio=max(kv, default=None),
        preemptions_over_budget=max(preemptions, default=None),
        replicas_lost=sum(not replica.up and not replica.removed for replica in pool),
    )
