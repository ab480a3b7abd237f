"""What the rungs in force leave of a request's options, and the refusal where they leave none.

A pool is barred to a request that a rung holds back there, and to one that declines to be degraded where its ceiling
would be lowered. What a rung sent here from another pool comes past no rung that holds it back in that one. Pools that
are open to a request are asked alone. Where none is, it is foreseen as if all were, since the wait that it is spared is
what the ladder goes by, and then refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from llmshed.admission.lanes import Classification
from llmshed.admission.options import Cap, Option, options_on
from llmshed.admission.policy import LanePolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, Request, service_rank
from llmshed.admission.service.laddering import Laddering
from llmshed.admission.service.measures import Measures, Numbered
from llmshed.admission.service.pool import Pool
from llmshed.admission.verdict import Decision, Verdict


class Bar(NamedTuple):
    """Why a pool does not take a request that it could hold.

    Args:
        reason: the reason.
        by: the rung.
        of: the ladder of that rung.
        does: what it does, as the rest of a sentence about the rung.
    """

    reason: Reason
    by: Numbered
    of: Laddering
    does: str


class Offer(NamedTuple):
    """The options that rungs leave, with lowered ceilings, and why not for the pools that are barred, by name."""

    options: list[Option]
    bars: Mapping[str, Bar]


def offer_under_rungs(
    options: list[Option], request: Request, chosen: Classification, lane_policy: LanePolicy, pools: Mapping[str, Pool]
) -> Offer:
    """Return what rungs leave of options, at least one, that the request could have."""
    offered: list[Option] = []
    bars: dict[str, Bar] = {}
    before = None if request.moved_from is None else pools.get(request.moved_from)
    barred_before = None if before is None else _held_back(request, chosen, before.laddering)
    for name, asked in _by_pool(options).items():
        laddering = pools[name].laddering
        measures = None if laddering is None else laddering.measures
        bar, granted = barred_before or _held_back(request, chosen, laddering), asked
        cap = None
        if measures is not None and not request.drilled:  # which has the ceiling of the path that it tries
            cap = measures.cap(chosen.priority_class, request.tenant)
        if laddering is not None and measures is not None and cap is not None:
            granted = _capped(asked, request, lane_policy, measures, cap)
            if bar is None and request.declines_degrading and granted != asked:
                bar = _declined(granted, asked, cap, laddering)
        if bar is None and laddering is not None and request.declined:
            bar = _declined_before_counting(request, laddering)
        if bar is not None:
            bars[name] = bar
        offered += asked if request.declines_degrading else granted
    open_to_it = [option for option in offered if option.replica.spec.pool not in bars]
    return Offer(open_to_it, {}) if open_to_it else Offer(offered, bars)


def barred_verdict(verdict: Verdict, bars: Mapping[str, Bar], now: float) -> Verdict:
    """Return the refusal by the rung that bars the pool of a verdict, which says what would have been decided."""
    bar = bars[verdict.pool or ""]
    wait = bar.of.back_in_seconds(bar.by.number, now)
    return replace(
        verdict,
        decision=Decision.REFUSE,
        reason=bar.reason,
        rung=bar.by.rung.name,
        retry_after_seconds=max(wait, verdict.retry_after_seconds or 0.0),
        detail=f"rung {bar.by.rung.name} of ladder {bar.of.label} {bar.does}",
    )


def _by_pool(options: Sequence[Option]) -> dict[str, list[Option]]:
    by_pool: dict[str, list[Option]] = {}
    for option in options:
        by_pool.setdefault(option.replica.spec.pool, []).append(option)
    return by_pool


def _held_back(request: Request, chosen: Classification, laddering: Laddering | None) -> Bar | None:
    if laddering is None or laddering.measures is None:
        return None
    by = laddering.measures.holding_back(service_rank(chosen.lane, chosen.priority_class), request.tenant)
    if by is None:
        return None
    does = f"sheds interactive work of class {chosen.priority_class}"
    if chosen.lane is Lane.BULK:
        does = "stops bulk work where interactive work shares the replicas"
    return Bar(Reason.SHED_PRIORITY, by, laddering, does)


def _capped(
    options: list[Option], request: Request, lane_policy: LanePolicy, measures: Measures, by: Numbered
) -> list[Option]:
    """Return the same replicas with ceilings that the rung grants; equal options where none is lowered."""
    cap = Cap(by.rung.max_output_tokens or 0, measures.with_cap(request, by.number))
    return options_on([option.replica for option in options], request, lane_policy, cap)


def _declined_before_counting(request: Request, laddering: Laddering) -> Bar | None:
    """Bar a request that declines what the gateway would have done to it, by the highest rung that would have."""
    for number, rung in reversed(tuple(enumerate(laddering.in_force, 1))):
        if rung.action in request.declined:
            does = f"does {', '.join(request.declined)} to such a request, which declines to be degraded"
            return Bar(Reason.DEGRADATION_DECLINED, Numbered(number, rung), laddering, does)
    return None


def _declined(capped: list[Option], options: list[Option], by: Numbered, laddering: Laddering) -> Bar:
    ceiling_tokens = max(option.ceiling_tokens for option in options)
    granted_tokens = max(option.ceiling_tokens for option in capped)
    does = f"grants {granted_tokens:,} of {ceiling_tokens:,} output tokens, and the request declines to be degraded"
    return Bar(Reason.DEGRADATION_DECLINED, by, laddering, does)
