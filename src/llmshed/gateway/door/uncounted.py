"""A request that is refused before its prompts are counted; where refusals do not stand it passes uncounted."""

from dataclasses import replace

from llmshed.admission.reasons import Reason
from llmshed.admission.request import Request
from llmshed.admission.verdict import Decision, Verdict
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.counting.pool import BacklogError


class UncountedError(Exception):
    """A refusal that came before the count.

    Args:
        request: what is known of the request; its counts are 0, so that no bound is told or written down as one.
        verdict: why it is refused.
        problem: what it is told where that stands. (An error to raise would, raised while this one is handled, refer
            to this one and be referred to by it; only a garbage collection ends that.)
    """

    def __init__(self, request: Request, verdict: Verdict, problem: Problem) -> None:
        """Keep the request beside its refusal."""
        super().__init__(problem.message)
        self.request = replace(request, prompt_tokens=(0,) * len(request.prompt_tokens))
        self.verdict = verdict
        self.problem = problem


def backlog_verdict(error: BacklogError) -> Verdict:
    """Return the refusal of a request for whose bytes the counting pool has no room; its lane is not known."""
    return Verdict(
        Decision.REFUSE,
        Reason.COUNTING_BACKLOG,
        retry_after_seconds=error.retry_after_seconds,
        detail=str(error),
    )
