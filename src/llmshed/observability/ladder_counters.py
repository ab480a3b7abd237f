"""Counters of what ladders did: their steps, whose answers rungs changed, what that saved, and whom they refused."""

from collections.abc import Iterator
from itertools import product

from prometheus_client import CollectorRegistry, Counter

from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.verdict import Decision
from llmshed.ladder.model import RungAction
from llmshed.ladder.standing import Cause, Step
from llmshed.observability.decisions import DecisionLine
from llmshed.observability.family import Family

CHANGING = tuple(action for action in RungAction if action.changes_answers)
"""The actions that change answers."""
BYTES_PER_TOKEN = 4
"""Of English prose, about; other scripts and code differ by a factor of two."""
_LEAVING_OUT = (RungAction.DROP_ENRICHMENT, RungAction.SHRINK_CONTEXT)
_LANES = (Lane.INTERACTIVE, Lane.BULK)


class LadderCounters:
    """The counters on one registry; what is known beforehand is exported as 0 from the start."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, meaning: str, labels: tuple[str, ...]) -> Family[Counter]:
            return Family(Counter(name, meaning, labels, registry=registry))

        self.transitions = counter(
            "llmshed_ladder_transitions_total", "Changes of the rung in force, by cause.", ("pool", "cause")
        )
        self.degraded = counter(
            "llmshed_degraded_requests_total", "Requests that a rung changed, by what it did.", ("action", "lane")
        )
        self.saved = counter(
            "llmshed_degraded_saved_tokens_total",
            "Estimate: tokens that admitted requests asked for or sent and rungs did not grant or left out.",
            ("action",),
        )
        self.shed = counter(
            "llmshed_shed_requests_total",
            "Requests that a rung refused though they are valid: bulk that is stopped, classes that are shed.",
            ("lane", "priority_class"),
        )
        self.good_degraded = counter(
            "llmshed_good_degraded_requests_total",
            "Part of the good requests whose answers a rung changed.",
            ("lane", "priority_class"),
        )
        for action, lane in product(CHANGING, _LANES):
            self.degraded.of(action, lane)
        for action in CHANGING:
            self.saved.of(action)
        for lane, priority_class in product(_LANES, PriorityClass):
            self.shed.of(lane, priority_class)
            self.good_degraded.of(lane, priority_class)

    def know_pool(self, pool: str) -> None:
        """Export the steps of a pool that has a ladder as 0 until there are any."""
        for cause in Cause:
            self.transitions.of(pool, cause)

    def stepped(self, step: Step) -> None:
        """Count a step."""
        self.transitions.of(step.pool, step.cause).inc()

    def ended(self, decision: DecisionLine) -> None:
        """Count a request that ended; one of a drill is counted nowhere."""
        if decision.drill is not None or decision.lane is None:
            return
        for action in decision.degradations:
            self.degraded.of(action, decision.lane).inc()
        if decision.decision is Decision.ADMIT:
            for action, tokens in _saved_tokens(decision):
                self.saved.of(action).inc(tokens)
        if decision.rung is not None and decision.reason is Reason.SHED_PRIORITY:
            self.shed.of(decision.lane, decision.priority_class or PriorityClass.NORMAL).inc()

    def good(self, decision: DecisionLine) -> None:
        """Count a request that met its objectives, if a rung changed its answer."""
        if decision.degradations and decision.lane is not None:
            self.good_degraded.of(decision.lane, decision.priority_class or PriorityClass.NORMAL).inc()


def _saved_tokens(decision: DecisionLine) -> Iterator[tuple[RungAction, float]]:
    """Yield what each action saved, as far as it can be told.

    What was left out of a prompt is not counted, so it is taken by its bytes; where both actions left something out it
    is the later one's.
    """
    done = decision.degradations
    if RungAction.CAP_OUTPUT in done:
        yield RungAction.CAP_OUTPUT, _not_granted_tokens(decision)
    leaving_out = [action for action in _LEAVING_OUT if action in done]
    if leaving_out and decision.left_out_bytes:
        yield leaving_out[-1], decision.left_out_bytes / BYTES_PER_TOKEN * decision.copies


def _not_granted_tokens(decision: DecisionLine) -> int:
    """Return what a lowered ceiling leaves out, over all sequences; 0 where none was asked for, so none is known."""
    asked, granted = decision.asked_output_tokens, decision.output_ceiling_tokens
    if asked is None or granted is None:
        return 0
    return max(asked - granted, 0) * decision.sequences
