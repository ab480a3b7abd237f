"""From a traced request to a visit: who it is for the policy, where it counts, and what it takes alone."""

from bisect import bisect_left
from dataclasses import replace
from functools import lru_cache, partial
from itertools import count

from llmshed.admission.request import Request
from llmshed.whatif.idle import idle_times
from llmshed.whatif.setting import Setting
from llmshed.whatif.standing import standing_of
from llmshed.whatif.visits import Try, Visit
from llmshed.workload.request import TracedRequest
from llmshed.workload.scaling import original_tenant

MOST_IDLE_TIMES = 512
"""Idle times that are remembered, the last used ones: copies of a scaled trace come close together."""


def quartile_of(input_tokens: int, edges: tuple[int, int, int]) -> int:
    """Return the quartile of a prompt, 1 to 4; an edge belongs to the quartile below it."""
    return bisect_left(edges, input_tokens) + 1


class Door:
    """Makes visits and the requests of their tries."""

    def __init__(self, setting: Setting, edges: tuple[int, int, int]) -> None:
        """Stand on a setting; `edges` are the input tokens up to which a prompt belongs to quartile 1, 2 and 3."""
        self._setting = setting
        self._edges = edges
        self._limits = setting.specs[0].limits
        self._visits = count(1)
        # They depend on nothing but their arguments, all of them numbers.
        self._idle_times = lru_cache(MOST_IDLE_TIMES)(partial(idle_times, setting.build_model))

    def visit(self, traced: TracedRequest, now: float) -> Visit:
        """Return the visit of a traced request that arrives now.

        It is infeasible if a replica of its own would not serve it, or not within its TPOT objective. Its TTFT
        objective is a multiple of what it takes there, so it is met there always.
        """
        setting = self._setting
        if traced.at_seconds < now:  # it goes back in time, and arrives with the one before it
            traced = replace(traced, at_seconds=now)
        tenant = self._tenant(traced.tenant)
        standing = standing_of(self._request(0, traced, tenant, now), setting.policy, self._limits)
        idle = self._idle_times(traced.input_tokens, traced.true_output_tokens, standing.ceiling_tokens, traced.copies)
        tpot_objective = setting.objectives.tpot_seconds[standing.lane]
        return Visit(
            traced=traced,
            tenant=tenant,
            standing=standing,
            quartile=quartile_of(traced.input_tokens, self._edges),
            feasible=idle is not None and (idle.tpot_seconds or 0.0) <= tpot_objective,
            ttft_objective_seconds=setting.objectives.ttft_seconds(0.0 if idle is None else idle.ttft_seconds),
            tpot_objective_seconds=tpot_objective,
            wanted_tokens=0 if idle is None else traced.input_tokens * traced.copies + idle.output_tokens,
            first_arrived_at=now,
            fingerprint=f"visit-{next(self._visits)}",
        )

    def request(self, attempt: Try) -> Request:
        """Return a try as the gate sees it: nothing of its true length."""
        visit = attempt.visit
        asked = self._request(attempt.key, visit.traced, visit.tenant, attempt.arrived_at)
        return replace(asked, fingerprint=visit.fingerprint, declared_repeats=visit.tries - 1)

    def _tenant(self, traced: str) -> str:
        """Return the policy's tenant of that name, or of the name that a scaled copy's was made from."""
        known = self._setting.policy.tenants
        return next((name for name in (traced, original_tenant(traced)) if name in known), self._setting.default_tenant)

    def _request(self, key: int, traced: TracedRequest, tenant: str, arrived_at: float) -> Request:
        return Request(
            key=key,
            tenant=tenant,
            model=self._setting.model,
            prompt_tokens=(traced.input_tokens,),
            copies=traced.copies,
            asked_output_tokens=traced.asked_output_tokens,
            asked_intent=traced.intent,
            asked_class=traced.priority_class,
            streamed=traced.streamed,
            arrived_at=arrived_at,
            session=traced.session,
            prefix_blocks=() if traced.blocks is None else tuple(f"{block:x}" for block in traced.blocks.ids),
        )
