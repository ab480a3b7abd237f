"""What became of one relayed request, for its decision line."""

from dataclasses import dataclass

from llmshed.admission.reasons import Reason
from llmshed.admission.verdict import Verdict
from llmshed.observability.endings import EndedBy, Ending, Phase


@dataclass(slots=True)
class RelayOutcome:
    """Filled in while the request runs, so that it is right even when the relay is cancelled.

    Args:
        verdict: the verdict in force: that of the last dispatch, or of the refusal after a replica was lost.
        status: HTTP status that the client got or was about to get; 0 when it left before one was decided.
        ending: how the request ended; None while it runs.
        ended_by: who ended it.
        phase: what it was in when it ended.
        reason: why it failed or was refused; None for an answer that finished and for a client that left.
        sent_at: clock reading when the request was on its way to the engine.
        first_token_at: clock reading at the first token of a stream.
        ended_at: clock reading at the end.
        output_tokens: tokens that the engine generated, as far as seen; None when it did not tell.
        engine_input_tokens: the engine's own count of the input; None when it did not tell.
        finish_reason: the engine's own word for the end.
        redispatched: whether a second replica was tried.
        retry_after_seconds: the wait that the client was told, after jitter.
    """

    verdict: Verdict | None = None
    status: int = 0
    ending: Ending | None = None
    ended_by: EndedBy = EndedBy.NOBODY
    phase: Phase = Phase.SENDING
    reason: Reason | None = None
    sent_at: float | None = None
    first_token_at: float | None = None
    ended_at: float | None = None
    output_tokens: int | None = None
    engine_input_tokens: int | None = None
    finish_reason: str | None = None
    redispatched: bool = False
    retry_after_seconds: float | None = None
