"""The queue of a lane against a plain list that is sorted whenever somebody asks.

Weights are powers of two and tokens whole, so that all counters are exact and orders have to be equal, not alike.
"""

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fakes.queued import PlainQueue, waiting
from llmshed.admission.queueing.line import LaneQueue
from llmshed.admission.queueing.waiting import Waiting
from llmshed.admission.request import PriorityClass

WEIGHTS = {"acme": 1.0, "bolt": 1.0, "core": 2.0, "dune": 0.5}
tenants = st.sampled_from(sorted(WEIGHTS))
classes = st.sampled_from(PriorityClass)
sizes = st.integers(1, 4).map(lambda units: 250 * units)


class Lane(RuleBasedStateMachine):
    """Random joins, dispatches, endings, expiries and displacements on one virtual clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.keys = 0
        self.queue = LaneQueue()
        self.plain = PlainQueue()

    def made(
        self,
        tenant: str,
        priority_class: PriorityClass,
        tokens: int,
        *,
        continuing: bool,
        residence_seconds: float = 8.0,
    ) -> Waiting:
        self.keys += 1
        return waiting(
            self.keys,
            tenant,
            self.now,
            tokens,
            100,
            priority_class,
            weight=WEIGHTS[tenant],
            sequences=1 + self.keys % 2,
            residence_seconds=residence_seconds,
            continuing=continuing,
        )

    def take_out(self, one: Waiting) -> None:
        assert self.queue.leave(one.key) is one
        self.plain.leave(one)

    @rule(
        tenant=tenants,
        priority_class=classes,
        tokens=sizes,
        continuing=st.booleans(),
        residence_seconds=st.sampled_from((4.0, 8.0)),
        later=st.sampled_from((0.0, 0.5)),
    )
    def join(
        self,
        tenant: str,
        priority_class: PriorityClass,
        tokens: int,
        continuing: bool,  # noqa: FBT001 - drawn
        residence_seconds: float,
        later: float,
    ) -> None:
        self.now += later
        one = self.made(tenant, priority_class, tokens, continuing=continuing, residence_seconds=residence_seconds)
        self.queue.join(one, self.now)
        self.plain.join(one, self.now)

    @precondition(lambda self: self.plain.waiting)
    @rule(data=st.data())
    def dispatch_the_first_of_a_class(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.plain.waiting))
        first = next(self.queue.in_order(one.priority_class, self.now))
        assert first is self.plain.order(one.priority_class, self.now)[0]
        self.take_out(first)
        self.queue.served(first.tenant, first.weight, first.total_tokens)
        self.plain.serve(first.tenant, first.weight, first.total_tokens, self.now)

    @rule(tenant=tenants, tokens=sizes)
    def dispatch_without_a_wait(self, tenant: str, tokens: int) -> None:
        self.queue.take_expired(self.now)  # tells the time
        self.queue.served(tenant, WEIGHTS[tenant], tokens)
        self.plain.serve(tenant, WEIGHTS[tenant], tokens, self.now)

    @precondition(lambda self: self.plain.in_flight)
    @rule(data=st.data(), unused=st.sampled_from((0.0, 0.5, 1.0)))
    def end(self, data: st.DataObject, unused: float) -> None:
        one = data.draw(st.sampled_from(self.plain.in_flight))
        unused_tokens = int(one.tokens * unused)
        self.queue.settle(one.tenant, one.weight, -unused_tokens, one.dispatched_at)
        self.plain.settle(one, unused_tokens)

    @precondition(lambda self: self.plain.waiting)
    @rule(data=st.data(), again=st.booleans())
    def leave(self, data: st.DataObject, again: bool) -> None:  # noqa: FBT001 - drawn
        one = data.draw(st.sampled_from(self.plain.waiting))
        self.take_out(one)
        if again:  # on another replica, at its old place
            self.queue.join(one, self.now)
            self.plain.join(one, self.now)

    @rule(later=st.sampled_from((0.5, 2.0, 8.0)))
    def expire(self, later: float) -> None:
        self.now += later
        over = sorted(
            (one for one in self.plain.waiting if one.expires_at <= self.now), key=lambda one: (one.expires_at, one.key)
        )
        assert self.queue.take_expired(self.now) == over
        for one in over:
            self.plain.leave(one)

    @rule(tenant=tenants, priority_class=classes, tokens=st.sampled_from((0, 500, 3_000)))
    def displace(self, tenant: str, priority_class: PriorityClass, tokens: int) -> None:
        one = self.queue.displaceable_by(priority_class, tenant, WEIGHTS[tenant], tokens)
        assert one is self.plain.displaceable_by(priority_class, tenant, WEIGHTS[tenant], tokens)
        if one is not None:
            self.take_out(one)

    @rule(tenant=tenants, priority_class=classes, continuing=st.booleans())
    def look_ahead(self, tenant: str, priority_class: PriorityClass, continuing: bool) -> None:  # noqa: FBT001 - drawn
        self.queue.in_order(priority_class, self.now)  # tells the time
        ahead = self.queue.ahead_of(tenant, WEIGHTS[tenant], priority_class, continuing=continuing)
        newcomer = self.made(tenant, priority_class, 250, continuing=continuing)
        order = self.plain.order(priority_class, self.now, newcomer)
        before = order[: order.index(newcomer)]
        assert sum(one.total_tokens for one in before) <= ahead.tokens <= self.queue.tokens_of(priority_class)
        others = [one for one in self.plain.of_class(priority_class) if one.tenant != tenant]
        own = [one for one in before if one.tenant == tenant]
        for told, name in ((ahead.input_tokens, "input_tokens"), (ahead.sequences, "sequences")):
            least = sum(getattr(one, name) for one in own)
            assert least <= told <= least + sum(getattr(one, name) for one in others)

    @invariant()
    def all_is_as_in_the_plain_list(self) -> None:
        assert self.queue.check() == []
        plain = self.plain.waiting
        assert len(self.queue) == len(plain)
        assert sorted(map(id, self.queue)) == sorted(map(id, plain))
        assert all(one.key in self.queue for one in plain)
        assert self.queue.tokens == sum(one.total_tokens for one in plain)
        assert self.queue.next_expiry() == min((one.expires_at for one in plain), default=None)
        assert self.queue.oldest_joined_at() == min((one.joined_at for one in plain), default=None)
        for priority_class in PriorityClass:
            mine = self.plain.of_class(priority_class)
            assert self.queue.requests_of(priority_class) == len(mine)
            assert self.queue.tokens_of(priority_class) == sum(one.total_tokens for one in mine)
            assert self.queue.input_tokens_of(priority_class) == sum(one.input_tokens for one in mine)
            assert list(self.queue.in_order(priority_class, self.now)) == self.plain.order(priority_class, self.now)


TestLane = pytest.mark.slow(Lane.TestCase)
TestLane.settings = settings(max_examples=25, stateful_step_count=40)  # sorting a list at every step takes its time
