"""Goodput: which requests count against a lane's service objectives, and which of them met these."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import assert_never

from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, Lane
from llmshed.config.lanes import LaneSettings
from llmshed.observability.decisions import DecisionLine
from llmshed.observability.endings import Ending


@dataclass(frozen=True, slots=True)
class Objective:
    """What a lane promises, in seconds: arrival to first token, and mean time per output token after it."""

    ttft_seconds: float
    tpot_seconds: float


def objectives_of(lanes: LaneSettings) -> dict[Lane, Objective]:
    """Return the objectives of the lanes that have any; overflow promises nothing."""
    return {
        Lane.INTERACTIVE: Objective(lanes.interactive.ttft_objective_seconds, lanes.interactive.tpot_objective_seconds),
        Lane.BULK: Objective(lanes.bulk.ttft_objective_seconds, lanes.bulk.tpot_objective_seconds),
    }


def counted_lane(decision: DecisionLine) -> Lane:
    """Return the lane that a request counts in.

    One that was refused before it was classified counts by its intent, and as interactive where even that is unknown:
    refusing earlier must not make goodput look better.
    """
    if decision.lane is not None:
        return decision.lane
    return Lane.BULK if decision.intent is Intent.BULK else Lane.INTERACTIVE


def met_objectives(decision: DecisionLine, objectives: Mapping[Lane, Objective]) -> bool | None:
    """Say whether the request met its lane's objectives; None when it does not count.

    What was served counts, and what failed or was refused for want of capacity counts as not met. A client's own
    mistake, leaving or spent quota does not count.
    """
    objective = objectives.get(counted_lane(decision))
    if objective is None:
        return None
    match decision.ending:
        case Ending.FINISHED:
            served = decision.lane is not None and decision.status < 400
            return _in_time(decision, objective) if served else None
        case Ending.REFUSED | Ending.EVICTED:
            return False if decision.reason is not None and is_ours(decision.reason) else None
        case Ending.FAILED:
            return False if decision.reason is None or is_ours(decision.reason) else None
        case Ending.CANCELLED:
            return None
        case _ as unreachable:
            assert_never(unreachable)


@cache
def is_ours(reason: Reason) -> bool:
    """Say whether a valid request was let down: the fleet had too little for it, or failed it."""
    match reason:
        case (
            Reason.TOKEN_BUDGET_EXHAUSTED
            | Reason.PREFILL_WINDOW_FULL
            | Reason.QUEUE_FULL
            | Reason.QUEUE_TIMEOUT
            | Reason.SHED_PRIORITY
            | Reason.DEGRADATION_DECLINED
            | Reason.CONCURRENCY_LIMIT
            | Reason.DEADLINE_INFEASIBLE
            | Reason.COUNTING_BACKLOG
            | Reason.NO_REPLICA
            | Reason.DRAINING
            | Reason.STARTING
            | Reason.TOKENIZER_UNAVAILABLE
            | Reason.UPSTREAM_ERROR
            | Reason.UPSTREAM_TIMEOUT
            | Reason.INTERNAL_ERROR
        ):
            return True
        case (
            Reason.MALFORMED
            | Reason.DUPLICATE_KEY
            | Reason.UNSUPPORTED_FIELD
            | Reason.UNAUTHENTICATED
            | Reason.FORBIDDEN
            | Reason.NOT_FOUND
            | Reason.METHOD_NOT_ALLOWED
            | Reason.CONTENT_ENCODING
            | Reason.HEADERS_TOO_LARGE
            | Reason.CONTEXT_LIMIT
            | Reason.OUTPUT_LIMIT
            | Reason.LANE_LIMIT
            | Reason.BODY_TOO_LARGE
            | Reason.TENANT_QUOTA
        ):
            return False
        case _ as unreachable:
            assert_never(unreachable)


def _in_time(decision: DecisionLine, objective: Objective) -> bool:
    """Compare times; a whole answer has the time in which a stream that met both objectives would have ended."""
    waits = decision.waits
    if waits.ttft_seconds is not None:
        in_pace = waits.tpot_seconds is None or waits.tpot_seconds <= objective.tpot_seconds
        return waits.ttft_seconds <= objective.ttft_seconds and in_pace
    if waits.total_seconds is None:
        return False
    tokens_each = (decision.output_tokens or 0) / max(decision.sequences, 1)
    allowed = objective.ttft_seconds + max(tokens_each - 1, 0.0) * objective.tpot_seconds
    return waits.total_seconds <= allowed
