"""A request that is refused before its prompts are counted; where refusals do not stand it passes uncounted."""

from dataclasses import replace

from llmshed.admission.reasons import Reason
from llmshed.admission.request import Request
from llmshed.admission.verdict import Decision, Verdict
from llmshed.errors import LlmshedError
from llmshed.gateway.counting.pool import BacklogError


class UncountedError(Exception):
    """A refusal that came before the count.

    Args:
        request: what is known of the request; its counts are 0, so that no bound is told or written down as one.
        verdict: why it is refused.
        refusal: what it is told where that stands.
    """

    def __init__(self, request: Request, verdict: Verdict, refusal: LlmshedError) -> None:
        """Keep the request beside its refusal."""
        super().__init__(str(refusal))
        self.request = replace(request, prompt_tokens=(0,) * len(request.prompt_tokens))
        self.verdict = verdict
        self.refusal = refusal


def backlog_verdict(error: BacklogError) -> Verdict:
    """Return the refusal of a request for whose bytes the counting pool has no room; its lane is not known."""
    return Verdict(
        Decision.REFUSE,
        Reason.COUNTING_BACKLOG,
        retry_after_seconds=error.retry_after_seconds,
        detail=str(error),
    )
