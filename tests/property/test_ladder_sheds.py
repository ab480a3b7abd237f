"""Nobody is shed by a rung while work of a lower class that would fit in its place is taken in the same pool.

Populations are drawn from seeds: pools and their replicas, who runs and waits there, and ladders of any rungs in any
order, also of such as no file may hold. Rungs are held, given up and replaced while requests come and end.
"""

import random
from typing import Any

import pytest

from fakes.door import BOTH_LANES, queueing_lanes, request, spec
from fakes.rungs import policy_on, pool_on, rung
from llmshed.admission.actions import Dispatch, Evict, Refuse
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import (
    Arrived,
    Event,
    Finished,
    PolicyChanged,
    ReplicaUp,
    RungHeld,
    RungReleased,
)
from llmshed.admission.policy import AdmissionPolicy, TenantPolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.request import SERVICE_RANKS, Intent, Lane, PriorityClass, service_rank
from llmshed.admission.service.pool import RANKED
from llmshed.admission.verdict import Decision, Verdict
from llmshed.ladder.model import Ladder, Windowing
from llmshed.ladder.standing import Hold
from llmshed.whatif.monitors.rungs import RungWatch
from llmshed.whatif.monitors.seen import Sight

TENANTS = {name: TenantPolicy(name, top_class=PriorityClass.HIGH) for name in ("acme", "other")}
STEPS = 30
SHED = 3
"""Sheds of a population beside which lower ranks are tried: each takes five decisions."""


class Population:
    """One controller of the populations, watched from outside, and what lives there."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - one seed, one population
        self.now = 0.0
        self.keys = 0
        self.live: list[int] = []
        self.shed = 0
        self.most_waiting = self.rng.choice([0, 2, 20])
        self.pools = {"main": self.rng.choice([BOTH_LANES, BOTH_LANES, frozenset({Lane.INTERACTIVE})])}
        self.pools |= {"own": frozenset({Lane.BULK})} | ({"second": BOTH_LANES} if self.rng.random() < 0.3 else {})
        policy = self.policy()
        self.controller = AdmissionController(policy)
        specs = [
            spec(f"{pool.name}-{n}", pool=pool.name, gross_ceiling_tokens=self.rng.choice([3_000, 9_000]))
            for pool in policy.pools
            for n in range(self.rng.choice([1, 1, 2]))
        ]
        for one in specs:
            self.controller.handle(ReplicaUp(one), 0.0)
        self.sight = Sight(policy, tuple(specs))
        self.watch = RungWatch()

    def ladder(self) -> Ladder:
        """Return a ladder of any rungs; a file with most of them would be refused."""
        rng, rungs = self.rng, []
        for number in range(rng.randint(1, 6)):
            action = rng.choice(["stop_bulk", "shed_interactive", "shed_interactive", "cap_output"])
            scope: dict[str, Any] = {"classes": rng.sample(["high", "normal", "low"], rng.randint(1, 3))}
            if action == "stop_bulk" and rng.random() < 0.7:
                scope = {}
            if rng.random() < 0.2:
                scope["tenants"] = ["acme"]
            more = {"max_output_tokens": rng.choice([50, 500])} if action == "cap_output" else {}
            rungs.append(rung(f"r{number}", action=action, scope=scope, **more))
        return Ladder.model_construct(
            schema_="llmshed.ladder/1",
            name="any",
            version="1",
            windows=Windowing(),
            evaluations=None,
            rungs=tuple(rungs),
        )

    def policy(self) -> AdmissionPolicy:
        """Return the policy with other ladders; pools and lanes stay."""
        pools = [pool_on(self.ladder() if name != "own" else None, name, lanes) for name, lanes in self.pools.items()]
        return policy_on(*pools, tenants=TENANTS, lanes=queueing_lanes(self.most_waiting, 1e4, 1e4))

    def live_on(self) -> None:
        """Let this and that happen."""
        for _ in range(STEPS):
            self.now += self.rng.choice([0.0, 0.1, 5.0])
            self.tell(self.event())
        assert self.controller.check() == ()

    def event(self) -> Event:
        drawn = self.rng.random()
        if drawn < 0.15:
            return RungHeld("main", Hold(f"r{self.rng.randint(0, 5)}", self.now + 100.0, "a test"))
        if drawn < 0.2:
            return RungReleased("main")
        if drawn < 0.23:
            return PolicyChanged(self.policy())
        if drawn < 0.4 and self.live:
            return Finished(self.live.pop(self.rng.randrange(len(self.live))), 1)
        self.keys += 1
        return Arrived(
            request(
                self.keys,
                self.rng.choice([10, 400, 2_500]),
                self.rng.choice([None, 10, 300]),
                tenant=self.rng.choice(list(TENANTS)),
                asked_intent=self.rng.choice(list(Intent)),
                asked_class=self.rng.choice(list(PriorityClass)),
            )
        )

    def tell(self, event: Event) -> None:
        try:
            actions = self.controller.handle(event, self.now)
        except (KeyError, ValueError):
            assert isinstance(event, RungHeld)  # the ladder is shorter than that
            return
        self.sight.hear(event, self.now)
        self.watch.hear(event)
        for action in actions:
            assert self.watch.look(self.sight, action) == []
            self.sight.see(action, self.now)
            if isinstance(action, Dispatch):
                self.live.append(action.key)
            elif isinstance(action, Refuse | Evict) and action.verdict.reason is Reason.SHED_PRIORITY:
                self.judge(action.verdict)

    def judge(self, verdict: Verdict) -> None:
        """Hold a shed against who waits in its pool, and against who would be taken there as they come."""
        if verdict.rung is None:
            return
        assert verdict.lane is not None
        assert verdict.priority_class is not None
        rank = service_rank(verdict.lane, verdict.priority_class)
        pool = next(one for one in self.controller.state(self.now).pools if one.name == verdict.pool)
        lower = [one for one in pool.queues if service_rank(one.lane, one.priority_class) > rank]
        assert not any(one.requests for one in lower)
        self.shed += 1
        if self.shed > SHED:
            return
        for number in range(rank + 1, SERVICE_RANKS):
            lane, priority_class = RANKED[number]
            intent = Intent.INTERACTIVE if lane is Lane.INTERACTIVE else Intent.BULK
            tenant = self.rng.choice(list(TENANTS))
            small = request(-1, 1, 1, tenant=tenant, asked_intent=intent, asked_class=priority_class)
            taken = self.controller.assess(small, self.now)
            assert taken.decision is Decision.REFUSE or taken.pool != verdict.pool, (verdict, taken)


@pytest.mark.parametrize(
    "populations",
    [
        pytest.param(range(100), id="100"),
        pytest.param(range(100, 10_100), id="10000", marks=[pytest.mark.soak, pytest.mark.timeout(3_000)]),
    ],
)
def test_nobody_is_shed_while_a_lower_rank_is_taken(populations: range) -> None:
    shed = 0
    for seed in populations:
        population = Population(seed)
        population.live_on()
        shed += population.shed
    assert shed > len(populations) // 2  # the draws do shed
